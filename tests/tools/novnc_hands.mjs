// A person at noVNC, moved by the tests in Rust one JSON command a line.
//
//   node novnc_hands.mjs CLIENTS SOCKET
//
// CLIENTS is where the packages of `browser/package.json` are installed, SOCKET the RFB server's. Says
// {"id": 0, "result": …} when noVNC is connected. Commands on standard input, each begun at once:
//   {"id": 1, "do": "type", "text": "…"}      presses the keys of a person's keyboard
//   {"id": 2, "do": "click", "at": [x, y]}    with the left button, in pixels of the desktop
//   {"id": 3, "do": "copy", "text": "…"}      offers text of the person's clipboard
//   {"id": 4, "do": "look"}                   what noVNC was told: state, name, clipboard; and connections
//   {"id": 5, "do": "picture"}                what it shows, a PNG in base64
// Each is answered with {"id", "result"} or {"id", "error"}. Ends with its input.
import { obey } from "./hands.mjs";
import { keyboardOf } from "./keyboard.mjs";
import { open } from "./novnc.mjs";

const [clients, socket] = process.argv.slice(2);
const { page, connections, close } = await open(clients, socket, { width: 1000, height: 700 });
const type = await keyboardOf(page);

const acts = {
  type: ({ text }) => type(text),
  click: ({ at: [x, y] }) => page.locator("#screen canvas").click({ position: { x, y } }),
  copy: ({ text }) => page.evaluate((text) => window.rfb.clipboardPasteFrom(text), text),
  look: async () => ({ ...(await page.evaluate(() => window.seen)), connections: connections() }),
  picture: () =>
    page.evaluate(() => document.querySelector("#screen canvas").toDataURL("image/png").split(",")[1]),
};

await obey(acts, await acts.look());
await close();
