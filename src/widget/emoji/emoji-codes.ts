import { html, nothing, type TemplateResult } from 'lit';
import { type Emoji, emojiOfCode, findEmojis } from './list.ts';
import type { App } from '../core/app.ts';

/** The field that the list belongs to. */
interface Field {
  readonly app: App;
  readonly area: HTMLTextAreaElement | null;
  requestUpdate(): void;
  /** Replaces a range of the text. */
  replace(text: string, from: number, to: number): void;
}

const MAX_CHOICES = 6;
/** A shortcode of at least two characters at the cursor, with its second colon if it has one. */
const CODE = /(?:^|[\s(])(:([a-z0-9_+-]{2,40})(:?))$/i;

let lists = 0;

/** The list of emoji that opens behind a `:`. The field keeps the focus; the arrow keys and Enter choose. `:tada:` is replaced. */
export class EmojiCodes {
  readonly #field: Field;
  readonly #id = `emojis-${(lists += 1)}`;
  #choices: readonly Emoji[] = [];
  #chosen = 0;
  #typed = '';

  constructor(field: Field) {
    this.#field = field;
  }

  /** For `aria-controls`; null while it is closed. */
  get controls(): string | null {
    return this.#choices.length === 0 ? null : this.#id;
  }

  /** For `aria-activedescendant`. */
  get active(): string {
    return `${this.#id}-${this.#chosen}`;
  }

  /** Opens, changes or closes the list for what is before the cursor, and replaces a shortcode that is complete. */
  async follow(area: HTMLTextAreaElement): Promise<void> {
    const [, typed = '', code = '', end = ''] = CODE.exec(area.value.slice(Math.max(0, area.selectionStart - 60), area.selectionStart)) ?? [];
    this.#typed = typed;
    if (typed === '') return this.close();
    const list = await import('./all.ts').catch(() => null);
    if (list === null || this.#typed !== typed) return;
    const exact = end === '' ? null : emojiOfCode(list.emojis, code);
    if (exact !== null) return this.#insert(exact);
    this.#show(end === '' ? findEmojis(list.emojis, code, MAX_CHOICES) : []);
  }

  close(): void {
    this.#typed = '';
    if (this.#choices.length > 0) this.#show([]);
  }

  /** Handles a key while the list is open. Returns whether the field should ignore it. */
  onKey(event: KeyboardEvent): boolean {
    const { length } = this.#choices;
    if (length === 0) return false;
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp':
        this.#chosen = (this.#chosen + (event.key === 'ArrowDown' ? 1 : length - 1)) % length;
        this.#field.requestUpdate();
        break;
      case 'Enter':
      case 'Tab':
        this.#insert(this.#choices[this.#chosen]?.emoji ?? '');
        break;
      case 'Escape':
        event.stopPropagation();
        this.close();
        break;
      default:
        return false;
    }
    event.preventDefault();
    return true;
  }

  render(): TemplateResult | typeof nothing {
    if (this.#choices.length === 0) return nothing;
    return html`<div class="menu mention-list" role="listbox" id=${this.#id} aria-label=${this.#field.app.language.text('emojiSearch')}>
      ${this.#choices.map(({ emoji, codes }, index) => html`<div class="option" role="option" id="${this.#id}-${index}" aria-selected=${String(index === this.#chosen)}
        @pointerdown=${(event: Event) => this.#onPointer(event, emoji)}><span>${emoji}</span><bdi lang="en">:${codes[0]}:</bdi></div>`)}
    </div>`;
  }

  #onPointer(event: Event, emoji: string): void {
    // The field keeps the focus.
    event.preventDefault();
    this.#insert(emoji);
  }

  #show(choices: readonly Emoji[]): void {
    this.#choices = choices;
    this.#chosen = 0;
    this.#field.requestUpdate();
  }

  #insert(emoji: string): void {
    const { area } = this.#field;
    const typed = this.#typed;
    this.close();
    if (area === null || !area.value.slice(0, area.selectionStart).endsWith(typed)) return;
    this.#field.replace(emoji, area.selectionStart - typed.length, area.selectionStart);
  }
}
