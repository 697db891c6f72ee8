import { KEYSYM, keysymOf } from "./keys.ts";

/** What happens to what is typed. */
export interface Typist {
  /** Whether it goes to the desktop at all. */
  inHand(): boolean;
  /** Where noVNC listens for keys. */
  canvas(): HTMLElement | null;
  /** Presses and releases a key by its keysym. */
  tap(keysym: number): void;
  /** The keyboard went elsewhere, and with it the releases of what is held down. */
  left(): void;
}

/** Keys that begin or belong to a composition, which come as text in the end. */
const COMPOSING = new Set(["Dead", "Process", "Unidentified", "Compose"]);

/**
 * The field that has the keyboard while a picture is in hand.
 *
 * Keys go on to noVNC. But accents of dead keys, input methods and text that the system inserts are not keys: browsers
 * give them to a text field only, as text, and from there they go to the desktop character by character.
 */
export function typingField(typist: Typist): HTMLTextAreaElement {
  const field = document.createElement("textarea");
  field.className = "typing";
  field.tabIndex = -1;
  field.rows = 1;
  field.autocomplete = "off";
  field.spellcheck = false;
  field.setAttribute("autocapitalize", "off");
  field.setAttribute("aria-label", "Keyboard of the desktop");
  // A tap on the picture must not bring up the keyboard of a phone.
  field.inputMode = "none";
  const forward = (event: KeyboardEvent) => {
    if (!typist.inHand() || event.isComposing || COMPOSING.has(event.key) || event.keyCode === 229) return;
    const copy = new KeyboardEvent(event.type, copied(event));
    typist.canvas()?.dispatchEvent(copy);
    // noVNC keeps to itself what it sends on, or the field would have it too.
    if (copy.defaultPrevented) event.preventDefault();
  };
  field.addEventListener("keydown", forward);
  field.addEventListener("keyup", forward);
  const send = () => {
    const text = field.value;
    field.value = "";
    if (!typist.inHand()) return;
    for (const character of text) typist.tap(keysymOf(character));
  };
  field.addEventListener("input", (event) => {
    if (!(event as InputEvent).isComposing) send();
  });
  field.addEventListener("compositionend", send);
  field.addEventListener("beforeinput", (event) => {
    // There is nothing in the field to delete, but there is on the desktop.
    if (event.inputType === "deleteContentBackward" && typist.inHand()) typist.tap(KEYSYM.backspace);
  });
  field.addEventListener("blur", () => typist.left());
  return field;
}

/** All of an event that noVNC looks at. */
function copied(event: KeyboardEvent): KeyboardEventInit {
  const { key, code, location, keyCode, ctrlKey, altKey, shiftKey, metaKey, repeat } = event;
  return {
    key,
    code,
    location,
    keyCode,
    ctrlKey,
    altKey,
    shiftKey,
    metaKey,
    repeat,
    modifierAltGraph: event.getModifierState("AltGraph"),
    modifierCapsLock: event.getModifierState("CapsLock"),
    modifierNumLock: event.getModifierState("NumLock"),
    cancelable: true,
    // The app's own listeners have heard the original.
    bubbles: false,
  };
}
