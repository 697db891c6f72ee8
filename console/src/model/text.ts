/**
 * Text that agents and programs wrote is not to be trusted. It is only ever put into the page as text, never as
 * markup; here is written out what could still mislead, as the command line does it: `\\u{202e}`.
 */

// Control characters but tab and newline, what turns the direction of writing, separators of lines and paragraphs,
// what is invisible or marks annotations, and tags, a text that nobody sees.
const MISLEADING =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text for the page: what could mislead is written out, and it is cut after `most` characters. */
export function clean(text: unknown, most = 20_000): string {
  if (typeof text !== "string") return "";
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut
    .replace(/\r\n?/g, "\n")
    .replace(MISLEADING, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The same on one line. */
export function cleanLine(text: unknown, most = 300): string {
  return clean(text, most).replace(/\s+/g, " ").trim();
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A path with the home directory as `~`. */
export function shortPath(path: string, home: string | undefined): string {
  if (home !== undefined && home !== "" && (path === home || path.startsWith(`${home}/`))) {
    return `~${path.slice(home.length)}`;
  }
  return path;
}

/** `1 desktop`, `2 desktops`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
