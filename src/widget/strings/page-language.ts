import { Language, loadStrings } from './language.ts';
import type { Strings } from './en.ts';

/** What says the language of a widget: its attributes, or the element around it that has one. */
interface Localized extends Element {
  readonly locale: string;
  readonly strings: Partial<Strings>;
}

/** The texts of a widget in the language of its page. Those of a language other than English are loaded when it is set. */
export class PageLanguage {
  readonly #widget: Localized;
  readonly #changed: () => void;
  #loaded: { readonly tag: string; readonly strings: Partial<Strings> } = { tag: '', strings: {} };

  /** @param changed called when the texts of a language have been loaded */
  constructor(widget: Localized, changed: () => void) {
    this.#widget = widget;
    this.#changed = changed;
  }

  /** The texts as far as they are loaded. */
  get current(): Language {
    const tag = this.#tag;
    const strings = { ...(this.#loaded.tag === tag ? this.#loaded.strings : {}), ...this.#widget.strings };
    // Times are in the language of the texts, which are English where there are no others.
    return new Language(/^en/i.test(tag) || Object.keys(strings).length > 0 ? tag : 'en', strings);
  }

  /** Loads the texts of the language that is set now, once. Never rejects: without them the widget is in English. */
  async load(): Promise<void> {
    const tag = this.#tag;
    if (this.#loaded.tag === tag) return;
    this.#loaded = { tag, strings: {} };
    const strings = await loadStrings(tag)?.catch(() => null);
    if (strings === null || strings === undefined || this.#loaded.tag !== tag) return;
    this.#loaded = { tag, strings };
    this.#changed();
  }

  get #tag(): string {
    return this.#widget.locale || this.#widget.closest('[lang]')?.getAttribute('lang') || navigator.language;
  }
}
