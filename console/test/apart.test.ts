import assert from "node:assert/strict";
import { test } from "node:test";

import { callApart, WITHDRAWN } from "../src/wire/apart.ts";
import { CONNECTION_LOST, Refusal } from "../src/wire/refusal.ts";

/** A WebSocket whose other end is the test. */
class FakeSocket {
  static last: FakeSocket;
  closed = false;
  sent: unknown[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor() {
    FakeSocket.last = this;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  says(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.onclose?.();
  }
}
Object.assign(globalThis, { WebSocket: FakeSocket });

const CALL = { session: "s", method: "control.request", params: { desktop: "d1" } };

function ask(): { socket: FakeSocket; withdraw: AbortController; answer: Promise<unknown> } {
  const withdraw = new AbortController();
  const answer = callApart("ws://x/api/live", CALL, withdraw.signal).catch((thrown) => Refusal.of(thrown).code);
  const socket = FakeSocket.last;
  socket.onopen?.();
  return { socket, withdraw, answer };
}

test("a call apart keeps its connection until it is closed", async () => {
  const { socket, answer } = ask();
  assert.deepEqual(socket.sent, [{ id: 1, ...CALL }]);
  // What else is told there is passed over.
  socket.says({ method: "sessions", params: {} });
  socket.says({ session: "s", id: 1, result: { leaseId: "l-1" } });
  const apart = (await answer) as { result: unknown; close: () => void };
  assert.deepEqual(apart.result, { leaseId: "l-1" });
  assert.equal(socket.closed, false);
  apart.close();
  assert.equal(socket.closed, true);
});

test("a call apart is withdrawn by closing its connection", async () => {
  const { socket, withdraw, answer } = ask();
  withdraw.abort();
  assert.equal(await answer, WITHDRAWN);
  assert.equal(socket.closed, true);
});

test("a call apart that is refused or cut off leaves no connection", async () => {
  const refused = ask();
  refused.socket.says({ session: "s", id: 1, error: { message: "no", data: { code: "timeout" } } });
  assert.equal(await refused.answer, "timeout");
  assert.equal(refused.socket.closed, true);
  const cut = ask();
  cut.socket.close();
  assert.equal(await cut.answer, CONNECTION_LOST);
});
