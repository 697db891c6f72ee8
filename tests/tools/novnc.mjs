// noVNC in a headless Chromium, connected to one RFB server on a unix socket.
//
// A browser speaks RFB over WebSockets only, so a bridge stands between: on the loopback, at a port that the
// system picks, it serves `novnc_page.html` with noVNC's own files, and copies bytes to and from the socket.
import { readFile } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { extname, join } from "node:path";
import { pipeline } from "node:stream";
import { fileURLToPath } from "node:url";
import { installed, launch, PATIENCE } from "./browser.mjs";

const PAGE = fileURLToPath(new URL("novnc_page.html", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript" };

/**
 * Opens `socket` in noVNC and waits until it is connected.
 *
 * `clients` is the directory in which the packages of `browser/package.json` are installed. Answers the page,
 * `connections()` (how often the browser has connected) and `close()`.
 */
export async function open(clients, socket, viewport) {
  const bridge = await serve(installed(clients)("ws"), join(clients, "node_modules/@novnc/novnc"), socket);
  const browser = await launch(clients);
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => console.error("page:", message.text()));
  await page.goto(`http://127.0.0.1:${bridge.port}/`);
  await page.waitForFunction(() => window.seen?.state === "connected");
  return {
    page,
    connections: () => bridge.connections,
    async close() {
      await browser.close();
      bridge.close();
    },
  };
}

/** Serves the page, and the RFB server at `socket` to each WebSocket. */
async function serve({ WebSocketServer, createWebSocketStream }, novnc, socket) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const file = pathname === "/" ? PAGE : join(novnc, pathname);
    readFile(file, (error, content) => {
      if (error) return response.writeHead(404).end();
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }).end(content);
    });
  });
  const bridge = { port: 0, connections: 0, close: () => server.close() };
  new WebSocketServer({ server }).on("connection", (browser) => {
    bridge.connections += 1;
    const stream = createWebSocketStream(browser);
    // Either side's end is the other's.
    pipeline(stream, connect(socket), stream, (error) => {
      if (error) console.error("bridge:", error.message);
      browser.terminate();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  bridge.port = server.address().port;
  return bridge;
}
