/** Milliseconds since the epoch of an RFC 3339 text, or null. */
export function instant(text: string | null | undefined): number | null {
  if (text === null || text === undefined) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** How long something has lasted, in one or two units: `12 s`, `3 min`, `2 h 5 min`, `4 d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** What is left, as `4:05`, or `1:00:00` from an hour on. Rounded up, so that it shows 0:00 only at the end. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const two = (number: number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** The local time of day, with the date if it is not today's. */
export function clockTime(text: string | null | undefined, now: number): string {
  const at = instant(text);
  if (at === null) return "";
  const time = new Date(at);
  const clock = time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  if (time.toDateString() === new Date(now).toDateString()) return clock;
  return `${time.toLocaleDateString(undefined, { month: "short", day: "numeric" })} ${clock}`;
}
