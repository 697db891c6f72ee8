// Starts the headless Chromium in which the tests show pages.
import { createRequire } from "node:module";
import { join } from "node:path";

// For each step that waits for the browser, in milliseconds.
export const PATIENCE = 50_000;

/** Requires one of the packages that are installed in `clients`, as `browser/package.json` says. */
export function installed(clients) {
  return createRequire(join(clients, "package.json"));
}

/** A browser of the packages in `clients`, which reaches the loopback interface and nothing else. */
export function launch(clients) {
  // Playwright itself turns background networking and updates off; with the rule nothing else can be reached.
  return installed(clients)("playwright-core").chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    timeout: PATIENCE,
  });
}
