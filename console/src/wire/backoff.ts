const FIRST_MS = 250;
const LAST_MS = 5_000;

/**
 * How long to wait before the next try, in milliseconds, after so many that failed. `chance` is from 0 to 1: many
 * tabs that lost the same server do not come back at the same instant.
 */
export function backoff(failures: number, chance: number): number {
  const full = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(failures, 10));
  return Math.round(full * (0.75 + chance / 2));
}
