import { en, type StringKey, type Strings } from './en.ts';

/** The English texts that are loaded: those of the first part, and with what is loaded later those of that. */
let english: Partial<Strings> = en;

/** Adds the English texts of what is loaded later. Texts without them are empty. */
export function addEnglish(texts: Partial<Strings>): void {
  english = { ...english, ...texts };
}

/** The texts and dates of one language. */
export class Language {
  /** The BCP 47 tag that dates and numbers follow. */
  readonly tag: string;
  readonly #strings: Partial<Strings>;
  // Making a format takes longer than rendering a comment, so each is made once.
  readonly #relative: Intl.RelativeTimeFormat;
  readonly #full: Intl.DateTimeFormat;
  readonly #day: Intl.DateTimeFormat;
  readonly #dayOfYear: Intl.DateTimeFormat;
  readonly #plural: Intl.PluralRules;

  /**
   * @param tag a BCP 47 tag such as `de-AT`
   * @param strings the texts, as far as they are not English
   */
  constructor(tag: string, strings: Partial<Strings> = {}) {
    this.tag = isTag(tag) ? tag : 'en';
    this.#strings = strings;
    this.#relative = new Intl.RelativeTimeFormat(this.tag, { numeric: 'auto', style: 'short' });
    this.#full = new Intl.DateTimeFormat(this.tag, { dateStyle: 'long', timeStyle: 'short' });
    this.#day = new Intl.DateTimeFormat(this.tag, { day: 'numeric', month: 'short' });
    this.#dayOfYear = new Intl.DateTimeFormat(this.tag, { day: 'numeric', month: 'short', year: 'numeric' });
    this.#plural = new Intl.PluralRules(this.tag);
  }

  /**
   * The text of a key, with its values. Those that may run in the other direction do not reorder the text around them.
   */
  text(key: StringKey, values: Readonly<Record<string, string | number>> = {}): string {
    const forms = this.#strings[key] ?? english[key] ?? '';
    const text =
      typeof forms === 'string'
        ? forms
        : (forms[this.#plural.select(Number(values['count'] ?? values['seconds']))] ?? forms.other);
    return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => isolated(values[name] ?? whole, text));
  }

  /** Whether its texts run from right to left. */
  get isRtl(): boolean {
    return RTL.test(this.text('comments'));
  }

  /** Names as they can be a value of a text. */
  names(names: readonly string[]): string {
    return names.map((name) => isolated(name, '')).join(', ');
  }

  /** A time as a reader says it: “5 min. ago”, “yesterday”, and a date from a week on. */
  ago(iso: string, now: number): string {
    const at = Date.parse(iso);
    const seconds = Math.min(0, (at - now) / 1000);
    if (seconds > -45) return this.#relative.format(0, 'second');
    if (seconds > -3_600) return this.#relative.format(Math.round(seconds / 60), 'minute');
    if (seconds > -86_400) return this.#relative.format(Math.round(seconds / 3_600), 'hour');
    if (seconds > -7 * 86_400) return this.#relative.format(Math.round(seconds / 86_400), 'day');
    const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
    return (sameYear ? this.#day : this.#dayOfYear).format(at);
  }

  /** The full date and time. */
  exactly(iso: string): string {
    return this.#full.format(new Date(iso));
  }
}

const RTL = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}/u;

/**
 * A value between the characters of Unicode that isolate it, if it or the text around it has letters from right to
 * left.
 */
function isolated(value: string | number, around: string): string {
  return typeof value === 'string' && RTL.test(value + around) ? `\u2068${value}\u2069` : String(value);
}

function isTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1;
  } catch {
    return false;
  }
}
