import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { DesktopControl } from "../control/desktop.ts";
import { FUNCTION, KEYSYM, keysymOf, MODIFIERS, SPECIAL, typed, type Key } from "../control/keys.ts";

/** Keys that a browser keeps to itself, or that a phone does not have. */
export function Keys({ control }: { control: DesktopControl }): JSX.Element {
  const { picture } = control;
  const [down, draw] = useState<readonly string[]>([]);
  // What is held down now. Clicks may come faster than it is drawn, and the panel may go before.
  const held = useRef(down);
  const setDown = (labels: readonly string[]) => {
    held.current = labels;
    draw(labels);
  };
  const press = (key: Key, event: MouseEvent) => {
    picture.key(key.keysym, key.code);
    control.input();
    // Who clicks goes on typing on the desktop; who came here by keyboard goes on here.
    if (event.detail > 0) picture.focus();
  };
  const hold = (key: Key) => {
    const labels = held.current;
    const isDown = labels.includes(key.label);
    picture.key(key.keysym, key.code, !isDown);
    control.input();
    setDown(isDown ? labels.filter((label) => label !== key.label) : [...labels, key.label]);
  };
  useEffect(() => {
    const release = () => {
      for (const key of MODIFIERS) {
        if (held.current.includes(key.label)) picture.key(key.keysym, key.code, false);
      }
      setDown([]);
    };
    const hidden = () => document.visibilityState === "hidden" && release();
    document.addEventListener("visibilitychange", hidden);
    return () => {
      document.removeEventListener("visibilitychange", hidden);
      release();
    };
  }, [picture]);
  return (
    <div class="stack tight keys-panel">
      <div class="row wrap" role="group" aria-label="Held down until clicked again">
        {MODIFIERS.map((key) => (
          <button
            key={key.label}
            type="button"
            aria-pressed={down.includes(key.label)}
            onClick={() => hold(key)}
            data-testid={`hold-${key.label.toLowerCase()}`}
          >
            {key.label}
          </button>
        ))}
        <button type="button" onClick={() => ctrlAltDel(control)} data-testid="key-ctrl-alt-del">
          Ctrl-Alt-Del
        </button>
        <ScreenKeyboard control={control} />
      </div>
      <div class="keys-more">
        {[SPECIAL, FUNCTION].map((keys, index) => (
          <div key={index} class="row wrap" role="group" aria-label={index === 0 ? "Special keys" : "Function keys"}>
            {keys.map((key) => (
              <button
                key={key.label}
                type="button"
                onClick={(event) => press(key, event)}
                {...(key.name === undefined ? {} : { "aria-label": key.name })}
                data-testid={`key-${key.code.toLowerCase()}`}
              >
                {key.label}
              </button>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

function ctrlAltDel(control: DesktopControl): void {
  const { picture } = control;
  picture.key(KEYSYM.control, "ControlLeft", true);
  picture.key(KEYSYM.alt, "AltLeft", true);
  picture.key(KEYSYM.delete, "Delete");
  picture.key(KEYSYM.alt, "AltLeft", false);
  picture.key(KEYSYM.control, "ControlLeft", false);
  control.input();
}

/** What stands in the field, so that there is something to delete. */
const FILLING = "_".repeat(64);

/** A field for keyboards that are no keys: those of phones, and input methods. */
function ScreenKeyboard({ control }: { control: DesktopControl }): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const last = useRef(FILLING);
  const { picture } = control;
  const change = (element: HTMLTextAreaElement) => {
    const { deleted, text } = typed(last.current, element.value);
    for (let number = 0; number < deleted; number++) picture.key(KEYSYM.backspace, null);
    for (const character of text) picture.key(keysymOf(character), null);
    control.input();
    last.current = element.value;
    // Filled up again between words, since a keyboard that suggests words must not lose its text half-way.
    if (element.value.length < 8 || element.value.length > 256) {
      element.value = FILLING;
      last.current = FILLING;
    }
  };
  return (
    <label class="screen-keyboard">
      <span class="button">Keyboard</span>
      <textarea
        ref={field}
        rows={1}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-label="Type on the desktop"
        onFocus={(event) => {
          event.currentTarget.value = FILLING;
          last.current = FILLING;
          toEnd(event.currentTarget);
        }}
        // A browser puts the caret where was clicked, after it gave the focus.
        onClick={(event) => toEnd(event.currentTarget)}
        onInput={(event) => change(event.currentTarget)}
        data-testid="screen-keyboard"
      />
    </label>
  );
}

function toEnd(field: HTMLTextAreaElement): void {
  field.setSelectionRange(field.value.length, field.value.length);
}
