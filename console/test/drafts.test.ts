import assert from "node:assert/strict";
import { test } from "node:test";

import { draft, drop, write } from "../src/state/drafts.ts";

/** A tab's storage; what it holds are its own keys, as in a browser. */
class FakeStorage {
  [key: string]: unknown;
}
Object.defineProperties(FakeStorage.prototype, {
  getItem: { value(this: FakeStorage, key: string) { return this[key] ?? null; } },
  setItem: { value(this: FakeStorage, key: string, text: string) { this[key] = text; } },
  removeItem: { value(this: FakeStorage, key: string) { delete this[key]; } },
});
const storage = new FakeStorage();
Object.assign(globalThis, { sessionStorage: storage });

const kept = () => Object.keys(storage);

test("a draft is kept until it is sent", () => {
  const shown = draft("steer/s/a1");
  write("steer/s/a1", "turn le");
  assert.equal(shown.value, "turn le");
  assert.equal(draft("steer/s/a1").value, "turn le");
  assert.deepEqual(kept(), ["handover-draft-steer/s/a1"]);
  drop("steer/s/a1");
  assert.equal(shown.value, "");
  assert.deepEqual(kept(), []);
});

test("a draft from before a reload is there", () => {
  Object.assign(storage, { "handover-draft-note/l-1": "half" });
  assert.equal(draft("note/l-1").value, "half");
  drop("note/l-1");
});

test("so many are kept and not more, and none that is very long", () => {
  for (let number = 0; number < 80; number++) write(`answer/s/r${number}`, "x");
  assert.equal(kept().length, 50);
  assert.equal(draft("answer/s/r79").value, "x");
  write("answer/s/r0", "x".repeat(50_001));
  assert.equal(kept().length, 49);
});
