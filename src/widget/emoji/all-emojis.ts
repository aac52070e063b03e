import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { adopt } from '../styles/adopt.ts';
import { icon } from '../views/icons.ts';
import { definePart, Part } from '../views/part.ts';
import { emojis, groups } from './all.ts';
import sheet from './emoji.css';
import { type Emoji, findEmojis, TONES, withTone } from './list.ts';

const COLUMNS = 8;
const MAX_FOUND = 96;
/** Where the skin tone that was chosen last is stored. */
const TONE = 'tone';

/** All emoji in a grid, with a field to search them. The arrow keys move within it. */
export class AllEmojis extends Part {
  static override properties = { ...Part.properties, query: { state: true }, tone: { state: true } };

  /** Called with the chosen emoji. */
  declare choose: (emoji: string) => void;
  declare query: string;
  declare tone: number;

  constructor() {
    super();
    this.query = '';
    this.tone = 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adopt(this, sheet);
    const tone = this.app.storage.read(TONE);
    this.tone = typeof tone === 'number' && tone in TONES ? tone : 0;
  }

  override firstUpdated(changed: PropertyValues): void {
    super.firstUpdated(changed);
    this.querySelector('input')?.focus({ preventScroll: true });
  }

  override render(): TemplateResult {
    const text = this.app.language;
    const query = this.query.trim();
    const own = isEmoji(query) ? [query] : [];
    const found = findEmojis(emojis, query, MAX_FOUND);
    return html`<div class="emoji-tools">
        <label class="search"
          >${icon('search')}<input
            type="search"
            aria-label=${text.text('emojiSearch')}
            placeholder=${text.text('emojiSearch')}
            .value=${this.query}
            @input=${this.#onInput}
            @keydown=${this.#onFieldKey}
        /></label>
        <button
          type="button"
          class="emoji"
          aria-label=${text.text('skinTone')}
          title=${text.text('skinTone')}
          @click=${this.#nextTone}
        >
          ✋${TONES[this.tone]}
        </button>
      </div>
      <div class="emoji-groups" @keydown=${this.#onGridKey}>
        ${query === '' ? groups.map((group, index) => this.#group(group, index === 0)) : own.length > 0 ? html`<div class="emoji-group">${own.map((emoji) => this.#button(emoji, emoji, true))}</div>` : this.#group(found, true)}
        ${query !== '' && own.length === 0 && found.length === 0 ? html`<p class="quiet" role="status">${text.text('emptySearchTitle')}</p>` : nothing}
      </div>`;
  }

  #group(group: readonly Emoji[], isFirst: boolean): TemplateResult {
    return html`<div class="emoji-group">
      ${group.map((each, index) => this.#button(withTone(each, this.tone), each.codes[0] ?? each.emoji, isFirst && index === 0))}
    </div>`;
  }

  /** @param isStop whether the Tab key stops at it */
  #button(emoji: string, name: string, isStop: boolean): TemplateResult {
    return html`<button
      type="button"
      class="emoji"
      lang="en"
      tabindex=${isStop ? 0 : -1}
      aria-label="${emoji} ${name.replaceAll('_', ' ')}"
      title=":${name}:"
      @click=${() => this.choose(emoji)}
    >
      ${emoji}
    </button>`;
  }

  readonly #onInput = ({ target }: Event): void => {
    this.query = (target as HTMLInputElement).value;
  };

  readonly #nextTone = (): void => {
    this.tone = (this.tone + 1) % TONES.length;
    this.app.storage.write(TONE, this.tone === 0 ? null : this.tone);
  };

  readonly #onFieldKey = (event: KeyboardEvent): void => {
    if (event.isComposing || (event.key !== 'ArrowDown' && event.key !== 'Enter')) return;
    event.preventDefault();
    const first = this.querySelector<HTMLElement>('.emoji-groups button');
    if (event.key === 'ArrowDown') first?.focus();
    else if (this.query.trim() !== '') first?.click();
  };

  readonly #onGridKey = (event: KeyboardEvent): void => {
    const rtl = getComputedStyle(this).direction === 'rtl' ? -1 : 1;
    const step = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: COLUMNS, ArrowUp: -COLUMNS }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const buttons = [...this.querySelectorAll<HTMLElement>('.emoji-groups button')];
    const next = buttons.indexOf(event.target as HTMLElement) + step;
    if (next < 0) this.querySelector('input')?.focus();
    else buttons[Math.min(next, buttons.length - 1)]?.focus();
  };
}

/**
 * Whether a text is an emoji that Unicode recommends, such as one from the keyboard of the system; false where browsers
 * cannot say it.
 */
function isEmoji(text: string): boolean {
  try {
    return new RegExp('^\\p{RGI_Emoji}$', 'v').test(text);
  } catch {
    return false;
  }
}

definePart('collab-comments-emojis', AllEmojis);
