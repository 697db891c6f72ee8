import assert from "node:assert/strict";
import { test } from "node:test";

import { Session } from "../src/state/session.ts";
import { Refusal } from "../src/wire/refusal.ts";
import type { Live } from "../src/wire/live.ts";
import type { Manifest } from "../src/wire/types.ts";

/** A session whose host answers when the test does. */
function session(): { session: Session; asked: string[]; answer: (result: unknown) => void } {
  const asked: string[] = [];
  const waiting: ((result: unknown) => void)[] = [];
  const call = (_session: string, method: string) => {
    asked.push(method);
    return new Promise((resolve) => waiting.push(resolve));
  };
  const manifest = { sessionId: "s", pid: 4711 } as Manifest;
  const answer = (result: unknown) => waiting.splice(0).forEach((resolve) => resolve(result));
  return { session: new Session({ call } as unknown as Live, manifest, false), asked, answer };
}

const code = (thrown: unknown) => Refusal.of(thrown).code;

test("nobody waits for a host that does not answer, but it is asked", async () => {
  const { session: one, asked } = session();
  const abort = one.act("abort").catch(code);
  one.fallsSilent();
  assert.equal(await abort, "timeout");
  assert.ok(one.problem.value?.includes("4711"));
  // What stops things is to be there when the host goes on.
  assert.equal(await one.act("stop_all_input").catch(code), "timeout");
  assert.deepEqual(asked, ["abort", "stop_all_input"]);
});

test("a host that answers again is as it was", async () => {
  const { session: one, answer } = session();
  one.fallsSilent();
  const patient = one.call("list");
  one.answers();
  assert.equal(one.problem.value, null);
  const abort = one.act("abort");
  answer("done");
  assert.equal(await patient, "done");
  assert.equal(await abort, "done");
});
