const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/**
 * Parses a whole number with a unit s, m, h or d (`45s`, `30m`, `1h`, `90d`) into seconds. Undefined for anything else,
 * and for zero.
 */
export function parseDuration(text: string): number | undefined {
  const match = /^([1-9]\d{0,8})([smhd])$/.exec(text.trim());
  if (match === null) return undefined;
  return Number(match[1]) * SECONDS[match[2] as keyof typeof SECONDS];
}

/** Formats seconds in the largest unit that divides them: 5400 is `90m`, 86400 is `1d`. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    if (seconds % SECONDS[unit] === 0 && seconds > 0) return `${seconds / SECONDS[unit]}${unit}`;
  }
  return `${seconds}s`;
}
