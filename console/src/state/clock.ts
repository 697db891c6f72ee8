import { signal } from "@preact/signals";

import { instant } from "../model/time.ts";

/** By how much the clock of the machine that is watched is ahead of this browser's, in milliseconds. */
let ahead = 0;

/** The present by the clock of the machine that is watched, in milliseconds since the epoch. */
export function present(): number {
  return Date.now() + ahead;
}

/** The same; moves on every second once it runs. */
export const now = signal(present());

/** Goes by the other clock, which has just shown this time. */
export function goBy(time: string | undefined): void {
  const there = instant(time);
  if (there === null) return;
  ahead = there - Date.now();
  now.value = present();
}

/** Lets time go on. */
export function run(): void {
  setInterval(() => {
    now.value = present();
  }, 1_000);
}
