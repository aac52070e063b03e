/**
 * By how much the crash tests multiply their kills: 1, or the environment variable CRASH_FACTOR (an integer), for
 * longer runs by hand. Give `npm test --` the option `--timeout 7200` then.
 */
export const CRASH_FACTOR = Number(process.env['CRASH_FACTOR'] ?? 1);
