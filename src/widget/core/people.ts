import type { UserSummary } from '../../model/user.ts';
import { safeLine } from '../text/safe-text.ts';

/** The number of avatar colours in the style sheet. */
const HUES = 8;

/** A user as the widget shows them. */
export interface Person {
  readonly userId: string;
  /** The name, or the id where none is known: one line without invisible characters. */
  readonly name: string;
  readonly avatarUrl: string | null;
  readonly isBot: boolean;
  /** One or two letters for an avatar without picture. */
  readonly initials: string;
  /** The index of the avatar's colour, the same for a user everywhere. */
  readonly hue: number;
}

/** The person to show for a user; `summary` is undefined for one that nothing is known about. */
export function personOf(userId: string, summary: UserSummary | undefined): Person {
  const name = safeLine(summary?.name ?? '') || safeLine(userId);
  return {
    userId,
    name,
    avatarUrl: webAddress(summary?.avatarUrl ?? null),
    isBot: summary?.kind === 'bot',
    initials: initialsOf(name),
    hue: hueOf(userId),
  };
}

function initialsOf(name: string): string {
  const words = name.split(/[\s._-]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0] ?? name];
  return (
    letters
      .map((word) => /[\p{L}\p{N}]/u.exec(word ?? '')?.[0] ?? '')
      .join('')
      .toLocaleUpperCase() || '?'
  );
}

function hueOf(userId: string): number {
  let sum = 0;
  for (const letter of userId) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return sum % HUES;
}

function webAddress(url: string | null): string | null {
  return url !== null && /^https?:\/\//.test(url) ? url : null;
}
