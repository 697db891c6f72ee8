// Playwright at the browser of a desktop, moved by the tests in Rust one JSON command a line.
//
//   node playwright_hands.mjs CLIENTS ENDPOINT
//
// CLIENTS is where the packages of `browser/package.json` are installed, ENDPOINT what `connectOverCDP` gets.
// Says {"id": 0, "result": TITLE} when it is connected and has the first page, whose object it keeps to the
// end. Commands on standard input, each begun at once:
//   {"id": 1, "do": "evaluate", "script": "…"}       on the page; a promise is waited for
//   {"id": 2, "do": "goto", "address": "…"}
//   {"id": 3, "do": "click", "selector": "…"}
//   {"id": 4, "do": "fill", "selector": "…", "text": "…"}
//   {"id": 5, "do": "picture"}                       how many bytes it has
//   {"id": 6, "do": "pages"}                         the title of each
//   {"id": 7, "do": "frames"}                        the title of each frame of the page
//   {"id": 8, "do": "back"}                          in the page's history
// Each is answered with {"id", "result"} or {"id", "error"}. Ends with its input.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const [clients, endpoint] = process.argv.slice(2);
const { chromium } = createRequire(join(clients, "package.json"))("playwright-core");
const browser = await chromium.connectOverCDP(endpoint);
const [context] = browser.contexts();
const [page] = context.pages();
page.setDefaultTimeout(50_000);

const acts = {
  evaluate: ({ script }) => page.evaluate(script),
  goto: async ({ address }) => (await page.goto(address), page.url()),
  click: ({ selector }) => page.click(selector),
  fill: ({ selector, text }) => page.fill(selector, text),
  picture: async () => (await page.screenshot()).length,
  pages: () => Promise.all(context.pages().map((page) => page.title())),
  frames: () => Promise.all(page.frames().map((frame) => frame.title())),
  back: async () => (await page.goBack(), page.url()),
};

const say = (answer) => console.log(JSON.stringify(answer));
say({ id: 0, result: await page.title() });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  acts[command.do](command).then(
    (result) => say({ id: command.id, result: result ?? null }),
    (error) => say({ id: command.id, error: String(error) }),
  );
}
await browser.close();
