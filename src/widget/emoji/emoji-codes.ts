import { html, nothing, type TemplateResult } from 'lit';
import type { App } from '../core/app.ts';
import { ChoiceList } from '../choice-list.ts';
import { type Emoji, emojiOfCode, findEmojis } from './list.ts';

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

/** Shortcodes anywhere in a text. */
const CODES = /(^|[\s(]):([a-z0-9_+-]{2,40}):/gi;

/** Whether a text may contain shortcodes, as one that was pasted, or typed faster than the emoji were loaded. */
export const mayHaveCodes = (text: string): boolean => text.search(CODES) >= 0;

/** Replaces all shortcodes in a text, or none if the emoji cannot be loaded. Others stay as they are. */
export async function replaceCodes(text: string): Promise<string> {
  const list = await import('./all.ts').catch(() => null);
  if (list === null) return text;
  return text.replaceAll(CODES, (typed, before: string, code: string) => {
    const emoji = emojiOfCode(list.emojis, code);
    return emoji === null ? typed : before + emoji;
  });
}

/** The list of emoji that opens behind a `:`. `:tada:` is replaced. */
export class EmojiCodes extends ChoiceList<Emoji, Field> {
  #typed = '';

  /** Opens, changes or closes the list for what is before the cursor, and replaces a shortcode that is complete. */
  async follow(area: HTMLTextAreaElement): Promise<void> {
    const [, typed = '', code = '', end = ''] =
      CODE.exec(area.value.slice(Math.max(0, area.selectionStart - 60), area.selectionStart)) ?? [];
    this.#typed = typed;
    if (typed === '') return this.close();
    const list = await import('./all.ts').catch(() => null);
    if (list === null || this.#typed !== typed) return;
    const exact = end === '' ? null : emojiOfCode(list.emojis, code);
    if (exact !== null) return this.#insert(exact);
    this.#show(end === '' ? findEmojis(list.emojis, code, MAX_CHOICES) : []);
  }

  override close(): void {
    this.#typed = '';
    if (this.isOpen) this.#show([]);
  }

  render(): TemplateResult | typeof nothing {
    if (this.choices.length === 0) return nothing;
    return html`<div
      class="menu mention-list"
      role="listbox"
      id=${this.id}
      aria-label=${this.field.app.language.text('emojiSearch')}
    >
      ${this.choices.map(
        (choice, index) =>
          html`<div
            class="option"
            role="option"
            id=${this.optionId(index)}
            aria-selected=${String(index === this.chosen)}
            @pointerdown=${this.chooser(choice)}
          >
            <span>${choice.emoji}</span><bdi lang="en">:${choice.codes[0]}:</bdi>
          </div>`,
      )}
    </div>`;
  }

  #show(choices: readonly Emoji[]): void {
    this.choices = choices;
    this.chosen = 0;
    this.field.requestUpdate();
  }

  protected override choose({ emoji }: Emoji): void {
    this.#insert(emoji);
  }

  #insert(emoji: string): void {
    const { area } = this.field;
    const typed = this.#typed;
    this.close();
    if (area === null || !area.value.slice(0, area.selectionStart).endsWith(typed)) return;
    this.field.replace(emoji, area.selectionStart - typed.length, area.selectionStart);
  }
}
