// A person at noVNC, moved by the tests in Rust one JSON command a line.
//
//   node novnc_hands.mjs CLIENTS SOCKET
//
// CLIENTS is where the packages of `browser/package.json` are installed, SOCKET the RFB server's. Says
// {"id": 0, "result": …} when noVNC is connected. Commands on standard input, done one after the other:
//   {"id": 1, "do": "type", "text": "…"}      presses the keys of a person's keyboard
//   {"id": 2, "do": "click", "at": [x, y]}    with the left button, in pixels of the desktop
//   {"id": 3, "do": "copy", "text": "…"}      offers text of the person's clipboard
//   {"id": 4, "do": "look"}                   what noVNC was told: state, name, clipboard; and connections
//   {"id": 5, "do": "picture"}                what it shows, a PNG in base64
// Each is answered with {"id", "result"} or {"id", "error"}. Ends with its input.
import { createInterface } from "node:readline";
import { open } from "./novnc.mjs";

// What Playwright's American keyboard lacks, and where French and German keyboards have it.
const FOREIGN = {
  "é": { code: "Digit2" },
  "€": { code: "KeyE", altGraph: true },
  "@": { code: "KeyQ", altGraph: true },
};

const [clients, socket] = process.argv.slice(2);
const { page, connections, close } = await open(clients, socket, { width: 1000, height: 700 });
const keyboard = await page.context().newCDPSession(page);
const press = (type, key, code) => keyboard.send("Input.dispatchKeyEvent", { type, key, code });

async function type(text) {
  for (const character of text) {
    const foreign = FOREIGN[character];
    if (foreign) {
      if (foreign.altGraph) await press("rawKeyDown", "AltGraph", "AltRight");
      await press("rawKeyDown", character, foreign.code);
      await press("keyUp", character, foreign.code);
      if (foreign.altGraph) await press("keyUp", "AltGraph", "AltRight");
    } else if (/[A-Z]/.test(character)) {
      await page.keyboard.press(`Shift+Key${character}`);
    } else {
      await page.keyboard.press(character);
    }
  }
}

const acts = {
  type: ({ text }) => type(text),
  click: ({ at: [x, y] }) => page.locator("#screen canvas").click({ position: { x, y } }),
  copy: ({ text }) => page.evaluate((text) => window.rfb.clipboardPasteFrom(text), text),
  look: async () => ({ ...(await page.evaluate(() => window.seen)), connections: connections() }),
  picture: () =>
    page.evaluate(() => document.querySelector("#screen canvas").toDataURL("image/png").split(",")[1]),
};

const say = (answer) => console.log(JSON.stringify(answer));
say({ id: 0, result: await acts.look() });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    say({ id: command.id, result: (await acts[command.do](command)) ?? null });
  } catch (error) {
    say({ id: command.id, error: String(error) });
  }
}
await close();
