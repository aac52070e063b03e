import type { Strings } from './en.ts';

/** The languages that have texts beside English. Each is a file of its own, which is loaded where it is chosen. */
const languages: Readonly<Record<string, () => Promise<Strings>>> = {
  ar: async () => (await import('./ar.ts')).ar,
  de: async () => (await import('./de.ts')).de,
  es: async () => (await import('./es.ts')).es,
  fr: async () => (await import('./fr.ts')).fr,
  he: async () => (await import('./he.ts')).he,
  it: async () => (await import('./it.ts')).it,
  ja: async () => (await import('./ja.ts')).ja,
  ko: async () => (await import('./ko.ts')).ko,
  nl: async () => (await import('./nl.ts')).nl,
  pl: async () => (await import('./pl.ts')).pl,
  'pt-BR': async () => (await import('./pt-br.ts')).ptBr,
  'zh-Hans': async () => (await import('./zh-hans.ts')).zhHans,
};

/** The texts that a wanted language is shown in. */
interface Loaded {
  /** The language that was wanted, such as `de-AT`. */
  readonly tag: string;
  readonly strings: Partial<Strings>;
}

/**
 * Loads the texts of the first of these languages that has some; without texts (`strings` is empty) if it is English,
 * or null if none has. Rejects if the file cannot be loaded.
 *
 * @param tags BCP 47 tags, the most wanted first; those that are none are passed over
 */
export async function loadStrings(tags: readonly string[]): Promise<Loaded | null> {
  for (const tag of tags) {
    const name = nameOf(tag);
    const load = languages[name];
    if (load !== undefined) return { tag, strings: await load() };
    if (name === 'en') return { tag, strings: {} };
  }
  return null;
}

/**
 * The name that texts for a tag have: all kinds of Portuguese share those of Brazil, and Chinese has one name for
 * each script.
 */
function nameOf(tag: string): string {
  try {
    const { language, script } = new Intl.Locale(tag).maximize();
    return language === 'pt' ? 'pt-BR' : language === 'zh' ? `zh-${script ?? ''}` : language;
  } catch {
    return '';
  }
}
