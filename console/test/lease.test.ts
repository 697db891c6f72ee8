import assert from "node:assert/strict";
import { test } from "node:test";

import { FREE, leaseOf, limit, next, warning, type Happening, type Held, type Standing } from "../src/control/lease.ts";
import { backoff } from "../src/wire/backoff.ts";
import { Refusal } from "../src/wire/refusal.ts";

const HELD: Held = {
  session: "s", desktop: "d1", leaseId: "l-1", token: "secret", heartbeatMs: 5_000, since: 1_000,
  terms: { idleMs: 60_000 },
};
const GRANT = {
  leaseId: "l-1", token: "secret", epoch: 2, ttlMs: 30_000, heartbeatMs: 4_000, expiresInMs: 30_000, foreignClients: [],
};

function after(...happenings: Happening[]): Standing {
  return happenings.reduce((standing, happening) => next(standing, happening, 1_000), FREE);
}

const TAKEN: Happening[] = [{ kind: "take", ask: false }, { kind: "granted", held: HELD }];

test("one click takes, one returns", () => {
  assert.equal(after({ kind: "take", ask: false }).kind, "taking");
  assert.equal(after(...TAKEN).kind, "held");
  assert.equal(after(...TAKEN, { kind: "return" }).kind, "returning");
  const free = after(...TAKEN, { kind: "return" }, { kind: "ended", leaseId: "l-1", end: "return" });
  assert.deepEqual(free, { kind: "free", after: { kind: "ended", leaseId: "l-1", end: "return", by: "me", to: null, at: 1_000 } });
  // From elsewhere, without this tab.
  const taken = after(...TAKEN, { kind: "ended", leaseId: "l-1", end: "return" });
  assert.ok(taken.kind === "free" && taken.after?.kind === "ended" && taken.after.by === "other");
});

test("a refusal says who and why", () => {
  const lease = { leaseId: "l-9", holder: "ada", since: "", expiresInMs: 1, viewer: null };
  const free = after({ kind: "take", ask: false }, { kind: "refused", code: "human_lease_held", message: "ada has it", lease });
  assert.ok(free.kind === "free" && free.after?.kind === "refused" && free.after.lease?.holder === "ada");
});

test("what is of another lease changes nothing", () => {
  const held = after(...TAKEN);
  for (const happening of [
    { kind: "ended", leaseId: "l-2", end: "return" },
    { kind: "warning", warning: { leaseId: "l-2", limit: "idle", leftMs: 1 } },
    { kind: "asked", request: { leaseId: "l-2", from: "x", note: null } },
    { kind: "reclaimed", grant: { ...GRANT, leaseId: "l-2" } },
  ] satisfies Happening[]) {
    assert.deepEqual(next(held, happening, 2_000), held);
  }
});

test("a lost connection keeps the lease until it is reclaimed or stale", () => {
  const lost = after(...TAKEN, { kind: "connection_lost" });
  assert.equal(lost.kind, "lost");
  assert.equal(leaseOf(lost)?.token, "secret");
  const again = next(lost, { kind: "reclaimed", grant: GRANT }, 2_000);
  assert.ok(again.kind === "held" && again.held.heartbeatMs === 4_000 && again.held.since === 1_000);
  const gone = next(lost, { kind: "ended", leaseId: "l-1", end: "stale" }, 2_000);
  assert.equal(gone.kind, "free");
});

test("how a lease ended may be told after it was found to have", () => {
  const ended = (leaseId: string, end: "stale" | "lost" | "revoked" | "timeout") => ({ kind: "ended", leaseId, end }) as const;
  const stale = after(...TAKEN, ended("l-1", "stale"));
  assert.equal(next(stale, ended("l-2", "revoked"), 2_000), stale);
  const told = next(stale, ended("l-1", "revoked"), 2_000);
  assert.ok(told.kind === "free" && told.after?.kind === "ended" && told.after.end === "revoked");
  // What is known stays, and nothing is said of what was not there.
  assert.equal(next(told, ended("l-1", "timeout"), 3_000), told);
  const lost = after(...TAKEN, ended("l-1", "lost"));
  assert.equal(next(lost, ended("l-1", "revoked"), 2_000), lost);
  assert.equal(next(FREE, ended("l-1", "revoked"), 2_000), FREE);
});

test("a connection that breaks while control is asked for leaves nothing behind", () => {
  const taking = after({ kind: "take", ask: false }, { kind: "connection_lost" });
  assert.equal(taking.kind, "taking");
  const free = next(taking, { kind: "refused", code: "connection_lost", message: "broken", lease: null }, 2_000);
  assert.equal(leaseOf(free), null);
});

test("the countdown follows input, the maximum and the host's warnings", () => {
  const held = after(...TAKEN);
  assert.deepEqual(limit(held, null), { limit: "idle", endsAt: 61_000 });
  const moved = next(held, { kind: "input" }, 5_000);
  assert.deepEqual(limit(moved, null), { limit: "idle", endsAt: 65_000 });
  const warned = next(moved, { kind: "warning", warning: { leaseId: "l-1", limit: "idle", leftMs: 9_000 } }, 50_000);
  assert.deepEqual(limit(warned, null), { limit: "idle", endsAt: 59_000 });
  assert.deepEqual(limit(next(warned, { kind: "input" }, 55_000), null), { limit: "idle", endsAt: 115_000 });

  const bounded = next(FREE, { kind: "granted", held: { ...HELD, terms: { idleMs: 60_000, maxMs: 10_000 } } }, 1_000);
  assert.deepEqual(limit(bounded, null), { limit: "maximum", endsAt: 11_000 });
  const near = next(bounded, { kind: "warning", warning: { leaseId: "l-1", limit: "maximum", leftMs: 500 } }, 9_000);
  assert.deepEqual(limit(next(near, { kind: "input" }, 9_100), null), { limit: "maximum", endsAt: 9_500 });
  assert.equal(limit(FREE, null), null);
});

test("the end of a link is a limit as well, and announced", () => {
  const held = after(...TAKEN);
  assert.deepEqual(limit(held, 41_000), { limit: "link", endsAt: 41_000 });
  assert.deepEqual(limit(held, 90_000), { limit: "idle", endsAt: 61_000 });
  // A quarter of what it lasts in control, a minute at most.
  assert.equal(warning(held, 41_000, 30_999), null);
  assert.deepEqual(warning(held, 41_000, 31_000), { limit: "link", endsAt: 41_000 });
  const long = next(held, { kind: "input" }, 3_600_000);
  assert.equal(warning(long, 3_600_000, 3_539_999), null);
  assert.equal(warning(long, 3_600_000, 3_540_000)?.limit, "link");
  // What the host warns of stays, if it is nearer.
  const warned = next(held, { kind: "warning", warning: { leaseId: "l-1", limit: "idle", leftMs: 5_000 } }, 2_000);
  assert.deepEqual(warning(warned, 20_000, 3_000), { limit: "idle", endsAt: 7_000 });
  assert.equal(warning(held, null, 3_000), null);
});

test("a request for control is shown until it is answered or withdrawn", () => {
  const asked = after(...TAKEN, { kind: "asked", request: { leaseId: "l-1", from: "ada", note: "my turn" } });
  assert.ok(asked.kind === "held" && asked.asked?.from === "ada");
  const refused = next(asked, { kind: "answered", give: false }, 2_000);
  assert.ok(refused.kind === "held" && refused.asked === null);
  const withdrawn = (leaseId: string, from: string) => ({ kind: "withdrawn", request: { leaseId, from } }) as const;
  assert.equal(next(asked, withdrawn("l-1", "bob"), 2_000), asked);
  assert.equal(next(asked, withdrawn("l-2", "ada"), 2_000), asked);
  const gone = next(asked, withdrawn("l-1", "ada"), 2_000);
  assert.ok(gone.kind === "held" && gone.asked === null);

  // The host says of what is given that it is answered, before control ends here.
  const given = next(next(asked, { kind: "answered", give: true }, 2_000), withdrawn("l-1", "ada"), 2_000);
  const free = next(given, { kind: "ended", leaseId: "l-1", end: "return" }, 3_000);
  assert.ok(free.kind === "free" && free.after?.kind === "ended" && free.after.to === "ada");
});

test("who asks can think better of it", () => {
  assert.deepEqual(after({ kind: "take", ask: true }, { kind: "cancelled" }), FREE);
  const held = after(...TAKEN);
  assert.equal(next(held, { kind: "cancelled" }, 2_000), held);
});

test("tries become rarer up to a bound", () => {
  const waits = [0, 1, 2, 5, 50].map((failures) => backoff(failures, 0.5));
  assert.deepEqual(waits, [250, 500, 1_000, 5_000, 5_000]);
  assert.ok(backoff(50, 1) <= 6_250);
});

test("refusals are read, whatever they look like", () => {
  const refusal = Refusal.read({ code: -32000, message: "no", data: { code: "paused", pauseReason: "requested" } });
  assert.equal(refusal.code, "paused");
  assert.equal(refusal.data.pauseReason, "requested");
  assert.equal(Refusal.read(null).code, "internal");
  assert.equal(Refusal.of("x").message, "x");
});
