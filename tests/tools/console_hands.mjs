// People before the web console, moved by the tests in Rust one JSON command a line (see `hands.mjs`).
//
//   node console_hands.mjs CLIENTS
//
// CLIENTS is where the packages of `browser/package.json` are installed. There is one Chromium; each `person`
// has cookies of their own in it, and any number of tabs. What is on a page is named by its `data-testid`.
import { readFileSync } from "node:fs";
import { installed, launch, PATIENCE } from "./browser.mjs";
import { obey } from "./hands.mjs";
import { keyboardOf } from "./keyboard.mjs";

const [clients] = process.argv.slice(2);
const browser = await launch(clients);
const people = new Map();
const tabs = new Map();
const axe = readFileSync(installed(clients).resolve("axe-core/axe.min.js"), "utf8");

async function person(name, options) {
  if (!people.has(name)) {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(PATIENCE);
    people.set(name, context);
  }
  return people.get(name);
}

async function keep(tab, page) {
  const seen = { page, type: await keyboardOf(page), problems: [], sockets: [] };
  page.on("websocket", (socket) => seen.sockets.push(new URL(socket.url()).pathname));
  page.on("pageerror", (error) => seen.problems.push(String(error)));
  page.on("console", (message) => {
    // What a refused request or a broken connection leaves there is no fault of the page.
    const refused = /^Failed to load resource|^WebSocket connection to/.test(message.text());
    if (message.type() === "error" && !refused) seen.problems.push(message.text());
    if (/Content.Security.Policy/i.test(message.text())) seen.problems.push(message.text());
  });
  tabs.set(tab, seen);
}

const page = (tab) => tabs.get(tab).page;
/** The selector of what is called so; a star stands for the end of a name that the test does not know. */
const named = (what) => (what.endsWith("*") ? `[data-testid^="${what.slice(0, -1)}"]` : `[data-testid="${what}"]`);
const find = (tab, what) => page(tab).locator(named(what)).first();
const devtools = async (tab) => page(tab).context().newCDPSession(page(tab));
const canvas = (tab) => page(tab).locator(".stage canvas");

/** Where a pixel of the desktop is in the page. */
async function place(tab, [x, y]) {
  const box = await canvas(tab).boundingBox();
  const width = await canvas(tab).evaluate((canvas) => canvas.width);
  const scale = box.width / width;
  return [box.x + (x + 0.5) * scale, box.y + (y + 0.5) * scale];
}

/** Runs in the page: takes control with other terms than the app asks for. */
function amend(terms) {
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (typeof data === "string" && /"method":"control\.(acquire|request)"/.test(data)) {
      const message = JSON.parse(data);
      Object.assign(message.params, terms);
      data = JSON.stringify(message);
    }
    send.call(this, data);
  };
}

/** Runs in the page: the clock of its computer is so far ahead. */
function setClock(aheadMs) {
  const now = Date.now;
  Date.now = () => now() + aheadMs;
}

const acts = {
  /** A new tab of `person` at `address`: the status of the answer. */
  async open({ tab, person: name, options, address, terms, aheadMs }) {
    const context = await person(name, options);
    const opened = await context.newPage();
    if (aheadMs) await opened.addInitScript(setClock, aheadMs);
    if (terms) await opened.addInitScript(amend, terms);
    await keep(tab, opened);
    const answer = await opened.goto(address);
    return answer.status();
  },
  /** The same page in a tab `as`, with a copy of its session storage. */
  async duplicate({ tab, as }) {
    const popup = page(tab).waitForEvent("popup");
    await page(tab).evaluate(() => void window.open(location.href));
    await keep(as, await popup);
    // A background tab has no frames of its own.
    await page(as).bringToFront();
  },
  front: ({ tab }) => page(tab).bringToFront(),
  go: ({ tab, hash }) => page(tab).evaluate((hash) => void (location.hash = hash), hash),
  reload: async ({ tab }) => void (await page(tab).reload()),
  close: ({ tab }) => page(tab).close(),
  /** The process behind the page dies. */
  async crash({ tab }) {
    const crashed = page(tab).waitForEvent("crash");
    page(tab).goto("chrome://crash").catch(() => {});
    await crashed;
  },
  address: ({ tab }) => page(tab).url(),
  title: ({ tab }) => page(tab).title(),

  click: ({ tab, what }) => find(tab, what).click(),
  fill: ({ tab, what, text }) => find(tab, what).fill(text),
  choose: async ({ tab, what, value }) => void (await find(tab, what).selectOption(value)),
  /** Waits until it is visible, or with `state` "hidden" until it is not. */
  wait: ({ tab, what, state }) => find(tab, what).waitFor({ state: state ?? "visible" }),
  /** Waits until the text or value of one that is called so contains these words. */
  says: ({ tab, what, words }) =>
    page(tab).waitForFunction(
      ([selector, words]) =>
        [...document.querySelectorAll(selector)].some((one) =>
          (typeof one.value === "string" ? one.value : one.innerText).includes(words),
        ),
      [named(what), words],
    ).then(() => {}),
  /** Waits until an attribute of the first that is called so has this value. */
  becomes: ({ tab, what, name, value }) =>
    page(tab).waitForFunction(
      ([selector, name, value]) => document.querySelector(selector)?.getAttribute(name) === value,
      [named(what), name, value],
    ).then(() => {}),
  /** How many there are. */
  count: ({ tab, what }) => page(tab).locator(named(what)).count(),
  has: async ({ tab, what }) => find(tab, what).isVisible(),
  text: ({ tab, what }) => find(tab, what).evaluate((one) => (typeof one.value === "string" ? one.value : one.innerText)),
  attribute: ({ tab, what, name }) => find(tab, what).getAttribute(name),
  evaluate: ({ tab, script }) => page(tab).evaluate(script),

  /** The keys of a person's keyboard for `text`. */
  type: ({ tab, text }) => tabs.get(tab).type(text),
  /** What an input method or a pasted text puts into the focused field. */
  insert: ({ tab, text }) => page(tab).keyboard.insertText(text),
  press: ({ tab, keys }) => page(tab).keyboard.press(keys),
  key: ({ tab, key, down }) => (down ? page(tab).keyboard.down(key) : page(tab).keyboard.up(key)),
  /** The pointer goes to a pixel of the desktop. */
  point: async ({ tab, at }) => page(tab).mouse.move(...(await place(tab, at))),
  button: ({ tab, down }) => (down ? page(tab).mouse.down() : page(tab).mouse.up()),

  /** The colour of a pixel of the desktop as the page shows it. */
  colour: ({ tab, at }) =>
    canvas(tab).evaluate((canvas, [x, y]) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3), at),
  /** A picture of the page, as a file. */
  shot: async ({ tab, file }) => void (await page(tab).screenshot({ path: file })),
  resize: ({ tab, size: [width, height] }) => page(tab).setViewportSize({ width, height }),
  colours: ({ tab, scheme }) => page(tab).emulateMedia({ colorScheme: scheme }),
  /** What is wrong for those who do not see or do not point, in words. */
  async violations({ tab }) {
    await page(tab).evaluate(axe);
    const { violations } = await page(tab).evaluate(() => window.axe.run(document));
    return violations.map(({ id, help, nodes }) => {
      const where = nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} (${failureSummary})`);
      return `${id}: ${help}: ${where.join("; ")}`;
    });
  },
  /** A command of the browser's own protocol. */
  devtools: async ({ tab, method, params }) => (await devtools(tab)).send(method, params),
  /** The paths of all WebSockets that the page has opened so far. */
  sockets: ({ tab }) => tabs.get(tab).sockets,
  /** What the page's console complained of. */
  problems: ({ tab }) => tabs.get(tab).problems,
};

await obey(acts, null);
await browser.close();
