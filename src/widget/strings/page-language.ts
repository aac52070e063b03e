import { Language } from './language.ts';
import type { Strings } from './en.ts';

/** What says the language of a widget: its attributes, or the element around it that has one. */
interface Localized extends Element {
  readonly locale: string;
  readonly strings: Partial<Strings>;
}

/**
 * The texts of a widget in the language of its page. Those of a language other than English are loaded when it is set.
 */
export class PageLanguage {
  readonly #widget: Localized;
  readonly #changed: () => void;
  /** The languages that were wanted when texts were loaded, with white space between them. */
  #wanted = '';
  #loaded: { readonly tag: string; readonly strings: Partial<Strings> } | null = null;

  /** @param changed called when the texts of a language have been loaded */
  constructor(widget: Localized, changed: () => void) {
    this.#widget = widget;
    this.#changed = changed;
  }

  /** The texts as far as they are loaded. */
  get current(): Language {
    const tags = this.#tags;
    const loaded = this.#wanted === tags.join(' ') ? this.#loaded : null;
    const own = this.#widget.strings;
    if (loaded !== null) return new Language(loaded.tag, { ...loaded.strings, ...own });
    // Times are in the language of the texts, which are English where there are no others.
    const tag = tags[0] ?? 'en';
    return new Language(/^en/i.test(tag) || Object.keys(own).length > 0 ? tag : 'en', own);
  }

  /** Loads the texts of the language that is set now, once. Never rejects: without them the widget is in English. */
  async load(): Promise<void> {
    const tags = this.#tags;
    const wanted = tags.join(' ');
    if (this.#wanted === wanted) return;
    this.#wanted = wanted;
    this.#loaded = null;
    if (/^en\b/i.test(wanted)) return;
    const loaded = await import('./languages.ts').then(({ loadStrings }) => loadStrings(tags)).catch(() => null);
    if (loaded === null || this.#wanted !== wanted) return;
    this.#loaded = loaded;
    this.#changed();
  }

  /** The wanted languages: that of the attribute, else of the page, else those of the browser. */
  get #tags(): readonly string[] {
    const tag = this.#widget.locale || this.#widget.closest('[lang]')?.getAttribute('lang');
    return tag ? [tag] : navigator.languages;
  }
}
