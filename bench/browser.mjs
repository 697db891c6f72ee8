// What a person at a browser waits for: measured in the page, one JSON object on standard output.
//
//   node browser.mjs CLIENTS compare CONSOLE SESSION DESKTOP REFERENCE
//   node browser.mjs CLIENTS watch CONSOLE SESSION/DESKTOP…
//
// CLIENTS is where the packages of `tests/tools/browser/package.json` are installed, CONSOLE a link that lets in,
// REFERENCE the address of noVNC's own page before the same display server. `compare` says first
// {"clicks": {console: [ms…], reference: [ms…]}, "paints": [ms…], "bytes": n}, then, for each line of its input,
// {"frames": {console: [a second…], reference: […]}}. `watch` opens the desktops in tabs, says {"watching": n},
// and ends with its input.
import { createInterface } from "node:readline";
import { launch, PATIENCE } from "../tests/tools/browser.mjs";

const [clients, act, link, ...rest] = process.argv.slice(2);
/** Turns of each way, so that whatever else the machine does meets both. */
const TURNS = 5;
const CLICKS = 30;
const FRAMES_MS = 2_000;
const LOADS = 7;

const browser = await launch(clients);
const options = { viewport: { width: 1500, height: 900 } };
const context = await browser.newContext(options);
context.setDefaultTimeout(PATIENCE);
const say = (answer) => console.log(JSON.stringify(answer));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function at(desktop) {
  const page = await context.newPage();
  await page.goto(new URL(`/#/${desktop}`, link).href);
  await page.locator('[data-testid="stage"][data-picture="connected"]').waitFor();
  return page;
}

/** The console, with the picture as large as it is. */
async function consolePage(session, desktop) {
  const page = await at(`${session}/desktop/${desktop}`);
  await page.getByTestId("scale-full").click();
  return { page, canvas: page.locator(".stage canvas") };
}

async function referencePage(address) {
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForFunction(() => window.seen?.state === "connected");
  return { page, canvas: page.locator("#screen canvas") };
}

/** Runs in the page: from the next press of a button to the first frame in which the square has another colour. */
function expectColour(canvas) {
  const context = canvas.getContext("2d");
  const pixel = () => context.getImageData(32, 32, 1, 1).data.join();
  const before = pixel();
  window.pressed = new Promise((resolve, reject) => {
    const press = (event) => {
      const look = () => {
        const took = performance.now() - event.timeStamp;
        if (pixel() !== before) resolve(took);
        else if (took > 10_000) reject(new Error("no new colour"));
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    };
    addEventListener("mousedown", press, { capture: true, once: true });
  });
}

async function clicks({ page, canvas }) {
  const times = [];
  const { x, y } = await canvas.boundingBox();
  await page.mouse.move(x + 300, y + 300);
  for (let number = 0; number < CLICKS; number++) {
    await canvas.evaluate(expectColour);
    await page.mouse.down();
    times.push(await page.evaluate(() => window.pressed));
    await page.mouse.up();
  }
  return times;
}

/** Runs in the page: how many frames a second show something new on the left of the desktop. */
function countFrames(canvas, ms) {
  const context = canvas.getContext("2d");
  const strip = () => {
    const { data } = context.getImageData(16, 0, 24, canvas.height);
    let sum = 0;
    for (let at = 0; at < data.length; at += 4) sum = (sum * 31 + data[at]) | 0;
    return sum;
  };
  return new Promise((resolve) => {
    const begun = performance.now();
    let [last, changes] = [strip(), 0];
    const look = () => {
      const now = strip();
      if (now !== last) changes += 1;
      last = now;
      const took = performance.now() - begun;
      if (took < ms) requestAnimationFrame(look);
      else resolve((changes * 1000) / took);
    };
    requestAnimationFrame(look);
  });
}

/** How long an empty browser takes from asking to the first words, and how much it loads. */
async function load() {
  const paints = [];
  let bytes = 0;
  for (let number = 0; number < LOADS; number++) {
    const fresh = await browser.newContext({ ...options, storageState: await context.storageState() });
    const page = await fresh.newPage();
    await page.goto(new URL("/", link).href);
    await page.getByTestId("home").waitFor();
    paints.push(
      await page.evaluate(
        () =>
          new Promise((resolve) => {
            const tell = (list) => {
              const paint = list.getEntriesByName("first-contentful-paint")[0];
              if (paint) resolve(paint.startTime);
            };
            new PerformanceObserver(tell).observe({ type: "paint", buffered: true });
          }),
      ),
    );
    const [session, desktop] = rest;
    await page.goto(new URL(`/#/${session}/desktop/${desktop}`, link).href);
    await page.locator('[data-testid="stage"][data-picture="connected"]').waitFor();
    bytes = await page.evaluate(() =>
      [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .map((one) => one.encodedBodySize)
        .reduce((sum, size) => sum + size, 0),
    );
    await fresh.close();
  }
  return { paints, bytes };
}

async function compare() {
  const [session, desktop, reference] = rest;
  const found = { console: [], reference: [] };
  for (let turn = 0; turn < TURNS; turn++) {
    const own = await consolePage(session, desktop);
    await own.page.getByTestId("take-control").click();
    await own.page.getByTestId("held").waitFor();
    found.console.push(...(await clicks(own)));
    await own.page.getByTestId("return-control").click();
    await own.page.getByTestId("take-control").waitFor();
    await own.page.close();
    const other = await referencePage(reference);
    found.reference.push(...(await clicks(other)));
    await other.page.close();
  }
  say({ clicks: found, ...(await load()) });
  await lines.next();
  const frames = { console: [], reference: [] };
  for (let turn = 0; turn < TURNS; turn++) {
    const own = await consolePage(session, desktop);
    frames.console.push(await own.canvas.evaluate(countFrames, FRAMES_MS));
    await own.page.close();
    const other = await referencePage(reference);
    frames.reference.push(await other.canvas.evaluate(countFrames, FRAMES_MS));
    await other.page.close();
  }
  say({ frames });
}

async function watch() {
  for (const desktop of rest) await at(desktop.replace("/", "/desktop/"));
  say({ watching: rest.length });
  await lines.next();
}

// Lets in.
const first = await context.newPage();
await first.goto(link);
await first.getByTestId("home").waitFor();
await first.close();
await (act === "compare" ? compare() : watch());
await browser.close();
process.exit(0);
