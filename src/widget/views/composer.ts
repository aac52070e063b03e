import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { type Draft, emptyDraft } from '../core/drafts.ts';
import { choose, mentionedIn, movePlaces } from '../core/mentioned.ts';
import type { StringKey } from '../strings/en.ts';
import { duration, fileSize } from '../media/format.ts';
import { canRecord, record, type Recording } from '../media/recorder.ts';
import { type Upload, Uploads } from '../media/uploads.ts';
import { safeLine, safeText } from '../text/safe-text.ts';
import { isOfInputMethod, typeText } from '../typing.ts';
import { EmojiCodes, mayHaveCodes, replaceCodes } from '../emoji/emoji-codes.ts';
import { icon } from './icons.ts';
import { MentionPicker } from './mention-picker.ts';
import { definePart, Part } from './part.ts';

/** The content of a composer: the text and files of a comment. */
export interface Written {
  readonly body: string;
  readonly mentions: string[];
  readonly attachmentIds: string[];
}

/** The bound of the server on a comment, in UTF-16 units. */
const MAX_LENGTH = 10_000;

/** The field to write a comment in: text, mentions and files. What is written is kept as a draft until it is sent. */
export class Composer extends Part {
  static override properties = {
    ...Part.properties,
    field: { attribute: false },
    initial: { attribute: false },
    label: { attribute: false },
    submitLabel: { attribute: false },
    recording: { state: true },
  };

  /** The name of the draft: `new`, the id of a thread, or `edit:` and that of a comment. */
  declare field: string;
  /** The content of the field if there is no draft. */
  declare initial: Draft;
  declare label: StringKey;
  declare submitLabel: StringKey;
  /** Sends what was written. Resolves with whether it was accepted; if not, it stays in the field. */
  declare submit: (written: Written) => Promise<boolean>;
  /** Called by Escape and the button to cancel; without it there is no such button. */
  declare cancel: (() => void) | undefined;
  /** The thread whose readers see that the user types; undefined shows nothing. */
  declare typingIn: string | null | undefined;
  declare recording: Recording | null;

  draft: Draft = emptyDraft;
  readonly uploads = new Uploads(
    () => this.app,
    () => this.#changed(),
  );
  readonly #picker = new MentionPicker(this);
  readonly #codes = new EmojiCodes(this);
  #clock = 0;
  /** As of the draft that is shown. */
  #refusals = 0;

  constructor() {
    super();
    this.initial = emptyDraft;
    this.label = 'replyPlaceholder';
    this.submitLabel = 'send';
    this.recording = null;
  }

  get area(): HTMLTextAreaElement | null {
    return this.querySelector('textarea');
  }

  /** Puts the cursor behind what is written. */
  focusText(): void {
    const { area } = this;
    area?.focus({ preventScroll: true });
    area?.setSelectionRange(area.value.length, area.value.length);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener('resize', this.#onResize);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener('resize', this.#onResize);
    window.clearInterval(this.#clock);
    this.recording?.cancel();
    this.recording = null;
    if (this.typingIn !== undefined) this.app.room.setTyping(this.typingIn, false);
  }

  override willUpdate(changed: PropertyValues): void {
    const { drafts } = this.app;
    const refusals = drafts.refusals(this.field);
    if (!changed.has('field') && refusals === this.#refusals) return;
    this.#refusals = refusals;
    this.draft = drafts.read(this.field) ?? this.initial;
    this.uploads.restore(this.draft.attachments);
  }

  override updated(changed: PropertyValues): void {
    const { area } = this;
    if (area === null) return;
    if (area.value !== this.draft.text) area.value = this.draft.text;
    if (changed.has('field') || area.value !== this.#fitted) {
      this.#fitted = area.value;
      fit(area);
    }
    this.#picker.place();
  }
  /** The text that the height of the field was measured for: measuring lays the page out. */
  #fitted = '';

  override render(): TemplateResult {
    const text = this.app.language;
    const over = this.draft.text.length - MAX_LENGTH;
    const blocked = this.#isBlocked();
    const label = text.text(this.submitLabel);
    const saves = this.submitLabel !== 'send' && this.submitLabel !== 'reply';
    return html`<div class="composer" part="composer">
      ${this.#picker.render()}${this.#codes.render()}
      <div class="composer-middle">
        <textarea
          part="input"
          rows="1"
          dir="auto"
          aria-label=${text.text(this.label)}
          placeholder=${text.text(this.label)}
          enterkeyhint="enter"
          aria-autocomplete="list"
          aria-controls=${this.#codes.controls ?? this.#picker.controls ?? nothing}
          aria-activedescendant=${this.#codes.active ?? this.#picker.active ?? nothing}
          aria-invalid=${over > 0 ? 'true' : 'false'}
          @input=${this.#onInput}
          @keydown=${this.#onKey}
          @paste=${this.#onPaste}
          @blur=${this.#onBlur}
        ></textarea>
        ${over > 0 ? html`<p class="field-error" role="alert">${text.text('errorLong', { count: over })}</p>` : nothing}
        ${
          this.uploads.items.length === 0
            ? nothing
            : html`<ul class="uploads">
                ${this.uploads.items.map((item) => this.#upload(item))}
              </ul>`
        }
      </div>
      <div class="composer-bar">
        ${this.recording === null ? this.#tools() : this.#recordingTools(this.recording)}
        <span class="grow"></span>
        ${this.cancel === undefined ? nothing : html`<button type="button" class="button quiet-button" @click=${this.cancel}>${text.text('cancel')}</button>`}
        <button
          type="button"
          class=${saves ? 'button primary' : 'send'}
          part="submit"
          aria-label=${label}
          title=${label}
          aria-disabled=${String(blocked)}
          @click=${this.#send}
        >
          ${saves ? label : icon('send')}
        </button>
      </div>
    </div>`;
  }

  #tools(): TemplateResult {
    const text = this.app.language;
    return html`<label class="icon-button file-button" title=${text.text('attach')}
        >${icon('clip')}<input
          type="file"
          class="visually-hidden"
          multiple
          accept="image/jpeg,image/png,image/gif,image/webp,audio/*,video/webm,video/mp4"
          aria-label=${text.text('attach')}
          @change=${this.#onChoose}
      /></label>
      <button
        type="button"
        class="icon-button"
        aria-label=${text.text('mention')}
        title=${text.text('mention')}
        @click=${() => this.insert('@')}
      >
        ${icon('at')}
      </button>
      ${canRecord() ? html`<button type="button" class="icon-button" aria-label=${text.text('record')} title=${text.text('record')} @click=${this.#record}>${icon('mic')}</button>` : nothing}`;
  }

  #recordingTools(recording: Recording): TemplateResult {
    const text = this.app.language;
    const time = duration(Date.now() - recording.startedAt);
    return html`<button
        type="button"
        class="button recording"
        aria-label=${text.text('stopRecording', { time })}
        @click=${this.#stopRecording}
      >
        ${icon('stop')}<span>${time}</span>
      </button>
      <button type="button" class="icon-button" aria-label=${text.text('cancel')} @click=${this.#cancelRecording}>
        ${icon('close')}
      </button>`;
  }

  #upload(item: Upload): TemplateResult {
    const text = this.app.language;
    const name = safeLine(item.name, 40);
    const percent = Math.round(item.progress * 100);
    return html`<li class="upload">
      ${item.preview === null ? icon('file') : html`<img src=${item.preview} alt="" />`}
      <span class="upload-name"
        ><bdi>${name}</bdi>
        ${item.attachment === null ? html`<progress max="100" value=${percent} aria-label=${text.text('uploading', { name, percent })}></progress>` : html`<span class="quiet">${fileSize(item.sizeBytes, text.tag)}</span>`}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label=${text.text('removeFile', { name })}
        @click=${() => this.uploads.remove(item)}
      >
        ${icon('close')}
      </button>
    </li>`;
  }

  /** Inserts text where the cursor is. */
  insert(text: string): void {
    const { area } = this;
    if (area === null) return;
    const before = area.value.slice(0, area.selectionStart);
    const gap = before === '' || /\s$/.test(before) ? '' : ' ';
    typeText(area, gap + text, area.selectionStart, area.selectionEnd);
    this.#onInput();
  }

  /** Replaces a range of the text as if it were typed. */
  replace(text: string, from: number, to: number): void {
    if (this.area !== null) typeText(this.area, text, from, to);
    this.#onInput();
  }

  /** Replaces the text, and notes that a user was mentioned. */
  mention(userId: string, name: string, from: number, to: number): void {
    const { area } = this;
    if (area === null) return;
    typeText(area, `@${name} `, from, to);
    this.#onInput();
    this.draft = choose(this.draft, userId, name, from);
    this.#changed();
  }

  readonly #onInput = (): void => {
    const { area } = this;
    if (area === null) return;
    const places = movePlaces(this.draft.places ?? [], this.draft.text, area.value, area.selectionStart);
    this.draft = { ...this.draft, text: area.value, places };
    if (this.typingIn !== undefined) this.app.room.setTyping(this.typingIn, area.value !== '');
    this.#picker.follow(area);
    void this.#codes.follow(area);
    this.#changed();
  };

  #changed(): void {
    this.draft = { ...this.draft, attachments: this.uploads.attachments };
    this.app.drafts.write(this.field, this.draft);
    this.requestUpdate();
  }

  readonly #onBlur = (): void => {
    this.#picker.close();
    this.#codes.close();
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    if (isOfInputMethod(event) || this.#picker.onKey(event) || this.#codes.onKey(event)) return;
    const wantsLine =
      event.shiftKey || event.altKey || (matchMedia('(pointer: coarse)').matches && !event.ctrlKey && !event.metaKey);
    if (event.key === 'Enter' && !wantsLine) {
      event.preventDefault();
      void this.#send();
    } else if (event.key === 'Escape' && this.cancel !== undefined) {
      event.stopPropagation();
      this.cancel();
    }
  };

  /** Whether there is nothing that could be sent. */
  #isBlocked(): boolean {
    const { draft, uploads } = this;
    const empty = safeText(draft.text).trim() === '' && uploads.items.length === 0;
    return empty || uploads.busy || draft.text.length > MAX_LENGTH;
  }

  // No form is submitted: a sandboxed frame may be forbidden to.
  readonly #send = async (): Promise<void> => {
    const { draft, app } = this;
    if (this.#isBlocked()) return;
    const field = this.field;
    this.draft = emptyDraft;
    this.uploads.restore([]);
    this.requestUpdate();
    app.drafts.send(field, draft);
    if (this.typingIn !== undefined) app.room.setTyping(this.typingIn, false);
    const typed = draft.text.trim();
    const accepted = await this.submit({
      body: mayHaveCodes(typed) ? await replaceCodes(typed) : typed,
      mentions: mentionedIn(draft),
      attachmentIds: draft.attachments.map(({ id }) => id),
    });
    app.drafts.settle(field, draft, accepted);
    if (!accepted) app.host.changed();
  };

  readonly #onResize = (): void => {
    if (this.area !== null) fit(this.area);
  };

  readonly #onPaste = (event: ClipboardEvent): void => {
    const { clipboardData } = event;
    const files = [...(clipboardData?.files ?? [])];
    // Cells and formatted text come with a picture of themselves. A file that was copied comes with its name alone.
    const isText =
      clipboardData?.types.includes('text/html') === true && clipboardData.getData('text/plain').trim() !== '';
    if (files.length === 0 || isText) return;
    event.preventDefault();
    this.uploads.add(files);
  };

  readonly #onChoose = (event: Event): void => {
    const input = event.target as HTMLInputElement;
    this.uploads.add(input.files ?? []);
    input.value = '';
    this.area?.focus();
  };

  readonly #record = async (): Promise<void> => {
    try {
      this.recording = await record();
      this.#clock = window.setInterval(() => this.requestUpdate(), 1_000);
    } catch {
      this.app.toasts.add({ kind: 'problem', text: this.app.language.text('recordingFailed') });
    }
  };

  readonly #stopRecording = async (): Promise<void> => {
    const { recording } = this;
    this.#endRecording();
    if (recording !== null) this.uploads.add([await recording.stop()]);
    this.area?.focus();
  };

  readonly #cancelRecording = (): void => {
    this.recording?.cancel();
    this.#endRecording();
  };

  #endRecording(): void {
    window.clearInterval(this.#clock);
    this.recording = null;
  }
}

/** Makes a field as high as its text. */
function fit(area: HTMLTextAreaElement): void {
  area.style.setProperty('height', 'auto');
  area.style.setProperty('height', `${Math.min(area.scrollHeight, 240)}px`);
}

definePart('collab-comments-composer', Composer);
