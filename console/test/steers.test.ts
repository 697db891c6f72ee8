import assert from "node:assert/strict";
import { test } from "node:test";

import { sent, steer } from "../src/state/steers.ts";
import type { Session } from "../src/state/session.ts";
import { CONNECTION_LOST, Refusal } from "../src/wire/refusal.ts";

/** A session whose host answers every call so. */
function session(answer: () => Promise<unknown>): Session {
  return { id: "s", act: answer } as unknown as Session;
}

async function stateAfter(answer: () => Promise<unknown>): Promise<string | undefined> {
  await steer(session(answer), "a1", "go left", "next_step");
  return sent.value.at(-1)?.receipt.state;
}

test("what nobody has answered is not called refused", async () => {
  assert.equal(await stateAfter(() => Promise.resolve({ steerId: "x", state: "accepted" })), "accepted");
  const refused = (code: string) => stateAfter(() => Promise.reject(new Refusal(code, "why")));
  assert.equal(await refused("agent_not_running"), "unsent");
  // The host may have stored it before it died, or before the connection did.
  for (const code of [CONNECTION_LOST, "session_unknown", "timeout"]) assert.equal(await refused(code), "sending");
});
