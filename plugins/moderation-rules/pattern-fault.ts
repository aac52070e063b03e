import { RE2JS } from 're2js';

/** The fault of a regular expression; null if RE2 accepts it. */
export function patternFault(pattern: string): string | null {
  try {
    RE2JS.compile(pattern);
    return null;
  } catch (error) {
    return (
      `has the pattern ${JSON.stringify(pattern)}, which is not a regular expression of RE2: ` +
      `${error instanceof Error ? error.message : String(error)}`
    );
  }
}
