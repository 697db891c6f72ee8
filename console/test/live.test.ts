import assert from "node:assert/strict";
import { test } from "node:test";

import { Live, type LinkState } from "../src/wire/live.ts";
import { Refusal } from "../src/wire/refusal.ts";

/** A WebSocket whose other end is the test. */
class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: { id: number; method: string }[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as { id: number; method: string });
  }

  opens(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  says(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.();
  }
}

/** What the server says when it is asked whether this browser is still let in. */
let status = 200;

Object.assign(globalThis, {
  WebSocket: FakeSocket,
  addEventListener: () => {},
  document: { addEventListener: () => {}, visibilityState: "visible" },
  fetch: () => Promise.resolve({ status }),
});

function start() {
  FakeSocket.all = [];
  const states: LinkState[] = [];
  const heard: unknown[] = [];
  const live = new Live("ws://here/api/live", {
    state: (state) => states.push(state),
    sessions: (sessions) => heard.push(sessions),
    notice: (session, method, params) => heard.push([session, method, params]),
  });
  const socket = FakeSocket.all[0];
  assert.ok(socket !== undefined);
  return { live, states, heard, socket };
}

async function code(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "done",
    (thrown) => Refusal.of(thrown).code,
  );
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 5_000; !condition(); ) {
    assert.ok(Date.now() < end, "it did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("answers find their calls, in whatever order; what comes unasked is told", async () => {
  const { live, heard, socket } = start();
  assert.equal(await code(live.call("s", "list")), "connection_lost");
  socket.opens();
  const first = live.call<{ n: number }>("s", "list");
  const second = live.call("s", "abort", { id: "a" });
  const [one, two] = socket.sent;
  socket.says({ session: "s", id: two?.id, error: { code: -32000, message: "no", data: { code: "agent_unknown" } } });
  socket.says({ session: "s", id: one?.id, result: { n: 7 } });
  assert.deepEqual(await first, { n: 7 });
  assert.equal(await code(second), "agent_unknown");
  socket.says({ session: "s", method: "event", params: { seq: 1 } });
  socket.says({ method: "sessions", params: { sessions: [] } });
  socket.onmessage?.({ data: "no JSON" });
  assert.deepEqual(heard, [["s", "event", { seq: 1 }], { sessions: [] }]);
});

test("a connection that breaks fails what waits, and comes back", async () => {
  const { live, states, socket } = start();
  socket.opens();
  const call = live.call("s", "steer");
  socket.close();
  assert.equal(await code(call), "connection_lost");
  await until(() => FakeSocket.all.length === 2);
  FakeSocket.all[1]!.opens();
  assert.deepEqual(states, ["connecting", "open", "lost", "lost", "open"]);
});

test("a connection that is given up is heard no more", async () => {
  const { live, heard, states, socket } = start();
  socket.opens();
  const call = live.call("s", "control.renew");
  live.giveUp();
  assert.equal(await code(call), "connection_lost");
  socket.says({ method: "sessions", params: {} });
  assert.deepEqual(heard, []);
  assert.equal(states.at(-1), "lost");
  await until(() => FakeSocket.all.length === 2);
  FakeSocket.all[1]!.opens();
});

test("a browser that is no longer let in stops trying", async () => {
  const { states, socket } = start();
  status = 401;
  socket.opens();
  socket.close();
  await until(() => states.at(-1) === "ended");
  assert.equal(FakeSocket.all.length, 1);
  status = 200;
});

test("what the server would not take is refused here, and breaks nothing", async () => {
  const { live, socket, states } = start();
  socket.opens();
  assert.equal(await code(live.call("s", "steer", { text: "ü".repeat(600_000) })), "line_too_long");
  assert.deepEqual(socket.sent, []);
  void live.call("s", "steer", { text: "ü".repeat(500_000) });
  assert.equal(socket.sent.length, 1);
  assert.equal(states.at(-1), "open");
});
