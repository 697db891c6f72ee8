// Drives noVNC in a headless Chromium: connect, type, point, exchange clipboard text, disconnect.
//
//   node novnc_session.mjs URL_OF_PAGE WEBSOCKET_URL
//
// The page is `novnc_page.html`, served beside noVNC's own `core/` and `vendor/`.
import { chromium } from "playwright-core";

const [page_url, socket_url] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 640, height: 480 } });
page.on("console", (message) => console.error("page:", message.text()));
await page.goto(`${page_url}?socket=${encodeURIComponent(socket_url)}`);
await page.waitForFunction(() => window.state === "connected", null, { timeout: 15000 });
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
await page.waitForFunction(() => window.state === "disconnected", null, { timeout: 15000 });
await browser.close();
