/** Keys by their X keysyms, as RFB names them. */
export const KEYSYM = {
  backspace: 0xff08,
  tab: 0xff09,
  enter: 0xff0d,
  escape: 0xff1b,
  home: 0xff50,
  left: 0xff51,
  up: 0xff52,
  right: 0xff53,
  down: 0xff54,
  pageUp: 0xff55,
  pageDown: 0xff56,
  end: 0xff57,
  print: 0xff61,
  insert: 0xff63,
  menu: 0xff67,
  f1: 0xffbe,
  shift: 0xffe1,
  control: 0xffe3,
  alt: 0xffe9,
  super: 0xffeb,
  delete: 0xffff,
} as const;

/** A key as a person presses it: what it means, and where it is, for servers that want to know. */
export interface Key {
  label: string;
  /** In words, where the label is a sign. */
  name?: string;
  keysym: number;
  code: string;
}

export const SPECIAL: readonly Key[] = [
  { label: "Esc", keysym: KEYSYM.escape, code: "Escape" },
  { label: "Tab", keysym: KEYSYM.tab, code: "Tab" },
  { label: "Super", keysym: KEYSYM.super, code: "MetaLeft" },
  { label: "Menu", keysym: KEYSYM.menu, code: "ContextMenu" },
  { label: "Print", keysym: KEYSYM.print, code: "PrintScreen" },
  { label: "Insert", keysym: KEYSYM.insert, code: "Insert" },
  { label: "Delete", keysym: KEYSYM.delete, code: "Delete" },
  { label: "Home", keysym: KEYSYM.home, code: "Home" },
  { label: "End", keysym: KEYSYM.end, code: "End" },
  { label: "Page up", keysym: KEYSYM.pageUp, code: "PageUp" },
  { label: "Page down", keysym: KEYSYM.pageDown, code: "PageDown" },
  { label: "←", name: "Left", keysym: KEYSYM.left, code: "ArrowLeft" },
  { label: "↑", name: "Up", keysym: KEYSYM.up, code: "ArrowUp" },
  { label: "↓", name: "Down", keysym: KEYSYM.down, code: "ArrowDown" },
  { label: "→", name: "Right", keysym: KEYSYM.right, code: "ArrowRight" },
];

export const FUNCTION: readonly Key[] = Array.from({ length: 12 }, (_, index) => ({
  label: `F${index + 1}`,
  keysym: KEYSYM.f1 + index,
  code: `F${index + 1}`,
}));

/** Keys that can be held down by a click, for those who have no keyboard. */
export const MODIFIERS: readonly Key[] = [
  { label: "Ctrl", keysym: KEYSYM.control, code: "ControlLeft" },
  { label: "Alt", keysym: KEYSYM.alt, code: "AltLeft" },
  { label: "Shift", keysym: KEYSYM.shift, code: "ShiftLeft" },
  { label: "Super", keysym: KEYSYM.super, code: "MetaLeft" },
];

/** The keysym that stands for a character. */
export function keysymOf(character: string): number {
  const point = character.codePointAt(0) ?? 0;
  if (point === 0x0a || point === 0x0d) return KEYSYM.enter;
  if (point === 0x09) return KEYSYM.tab;
  if ((point >= 0x20 && point <= 0x7e) || (point >= 0xa0 && point <= 0xff)) return point;
  return 0x0100_0000 + point;
}

/**
 * What was typed to make `after` of `before`: so many characters deleted at the end, then this text. A keyboard of
 * a phone, or an input method, does not tell keys but changes the text as a whole.
 */
export function typed(before: string, after: string): { deleted: number; text: string } {
  const old = [...before];
  const now = [...after];
  let same = 0;
  while (same < old.length && same < now.length && old[same] === now[same]) same++;
  return { deleted: old.length - same, text: now.slice(same).join("") };
}
