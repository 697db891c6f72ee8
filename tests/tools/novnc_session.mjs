// One session of noVNC for a recording: connect, type, point, exchange clipboard text, disconnect.
//
//   node novnc_session.mjs CLIENTS SOCKET
//
// CLIENTS is where the packages of `browser/package.json` are installed, SOCKET the RFB server's.
import { open } from "./novnc.mjs";

const [clients, socket] = process.argv.slice(2);
const { page, close } = await open(clients, socket, { width: 640, height: 480 });
await page.waitForTimeout(800);

const canvas = await page.locator("canvas").boundingBox();
const at = (x, y) => [canvas.x + x, canvas.y + y];
await page.mouse.move(...at(40, 40), { steps: 4 });
await page.mouse.down();
await page.mouse.move(...at(90, 60), { steps: 4 });
await page.mouse.up();
await page.mouse.click(...at(60, 60));
await page.mouse.click(...at(60, 60), { button: "right" });
await page.mouse.wheel(0, 120);
await page.keyboard.type("echo Hello, World! {42}", { delay: 15 });
await page.keyboard.press("Enter");
await page.keyboard.press("Control+KeyC");
await page.keyboard.press("Shift+ArrowLeft");
await page.keyboard.press("F5");
await page.evaluate(() => {
  window.rfb.clipboardPasteFrom("plain words");
  window.rfb.clipboardPasteFrom("Grüße, 漢字, 😀");
});
await page.waitForTimeout(400);
// The paste makes the server ask for the text that noVNC only announced.
await page.keyboard.press("Shift+Insert");
await page.keyboard.press("Enter");
await page.evaluate(() => {
  window.rfb.qualityLevel = 2;
  window.rfb.compressionLevel = 9;
});
await page.keyboard.type("ls -l /usr", { delay: 15 });
await page.keyboard.press("Enter");
await page.waitForTimeout(1200);
await page.evaluate(() => window.rfb.disconnect());
await page.waitForFunction(() => window.seen.state === "disconnected");
await close();
