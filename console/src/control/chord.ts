/** What of a key event matters here. */
export interface KeyPress {
  type: "keydown" | "keyup";
  code: string;
  ctrl: boolean;
  alt: boolean;
  shift: boolean;
}

/** What a person asks for with the keys of the app itself. */
export type Chord = "leave" | "emergency" | null;

const MODIFIER = /^(Control|Alt|Shift)(Left|Right)$/;

/**
 * Finds the app's own chords in what is typed, wherever the focus is.
 *
 * Ctrl, Alt and Shift pressed together and let go without another key leave the picture of a desktop; with X they ask
 * whether to stop everything. Together with any other key they are a chord of the desktop's.
 */
export class Chords {
  #together = false;

  hear(key: KeyPress): Chord {
    const all = key.ctrl && key.alt && key.shift;
    if (key.type === "keydown") {
      if (MODIFIER.test(key.code)) {
        this.#together = all;
        return null;
      }
      this.#together = false;
      return all && key.code === "KeyX" ? "emergency" : null;
    }
    if (!MODIFIER.test(key.code) || !this.#together) return null;
    this.#together = false;
    return "leave";
  }
}
