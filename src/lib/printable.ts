/** Replaces control characters, which could manipulate the terminal, in texts from users. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '·');
}
