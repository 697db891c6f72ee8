// A person's keyboard before a page, beyond the American one that Playwright has.

// What that lacks, and where French, German and Greek keyboards have it.
const FOREIGN = {
  "é": { code: "Digit2" },
  "ß": { code: "Minus" },
  "ü": { code: "BracketLeft" },
  "€": { code: "KeyE", altGraph: true },
  "@": { code: "KeyQ", altGraph: true },
  "{": { code: "Digit7", altGraph: true },
  "Ω": { code: "KeyV", shift: true },
};

/** What presses the keys for a text before `page`, one after the other. */
export async function keyboardOf(page) {
  const devtools = await page.context().newCDPSession(page);
  const press = (type, key, code) => devtools.send("Input.dispatchKeyEvent", { type, key, code });
  return async (text) => {
    for (const character of text) {
      const foreign = FOREIGN[character];
      if (foreign) {
        if (foreign.altGraph) await press("rawKeyDown", "AltGraph", "AltRight");
        if (foreign.shift) await press("rawKeyDown", "Shift", "ShiftLeft");
        await press("rawKeyDown", character, foreign.code);
        await press("keyUp", character, foreign.code);
        if (foreign.shift) await press("keyUp", "Shift", "ShiftLeft");
        if (foreign.altGraph) await press("keyUp", "AltGraph", "AltRight");
      } else if (/[A-Z]/.test(character)) {
        await page.keyboard.press(`Shift+Key${character}`);
      } else {
        await page.keyboard.press(character);
      }
    }
  };
}
