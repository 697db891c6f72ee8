import assert from "node:assert/strict";
import { test } from "node:test";

import { descendants, tokens, tree, whyNotSteerable } from "../src/model/agents.ts";
import { pauseWords } from "../src/model/desktops.ts";
import { needs } from "../src/model/needs.ts";
import { advance, joined, receipts, type Receipt } from "../src/model/receipts.ts";
import { append, entries, fill, MOST_EVENTS, skip, startAt } from "../src/model/record.ts";
import { clean, cleanLine, shortPath } from "../src/model/text.ts";
import { ALL, groupOf, matches, pictureOf } from "../src/model/timeline.ts";
import { age, countdown } from "../src/model/time.ts";
import { transcript } from "../src/model/transcript.ts";
import { told } from "../src/model/words.ts";
import type { AgentView, Event } from "../src/wire/types.ts";

function event(seq: number, kind = "agent_text", fields: Partial<Event> = {}): Event {
  const actor = { uid: 0, pid: 1, via: "test" };
  return { seq, at: "2026-01-31T09:30:00.250Z", kind, source: "agent", actor, agent: "a", ...fields };
}

function agent(id: string, parent: string | null = null, status: AgentView["status"] = "running"): AgentView {
  return { id, name: id, type: "pi", status, parent, depth: 0, task: "", startedAt: null, outputFile: null, pending: 0 };
}

const seqs = (events: readonly Event[]) => events.map((one) => one.seq);

test("what could mislead in what agents write is written out", () => {
  assert.equal(clean("a\u001b[31mred\u0007\u202eb\r\nc\td\re"), "a\\u{1b}[31mred\\u{7}\\u{202e}b\nc\td\ne");
  assert.equal(clean("\u2028\u{e0041}\u061c\0\u009b😀é"), "\\u{2028}\\u{e0041}\\u{61c}\\u{0}\\u{9b}😀é");
  assert.equal(clean("x".repeat(10), 4), "xxxx…");
  assert.equal(clean(7), "");
  assert.equal(cleanLine(" a\n\n b "), "a b");
});

test("paths, ages and countdowns are short", () => {
  assert.equal(shortPath("/home/me/shop", "/home/me"), "~/shop");
  assert.equal(shortPath("/home/meme", "/home/me"), "/home/meme");
  assert.deepEqual([0, 59_999, 60_000, 3_900_000, 36_000_000, 200_000_000].map(age), [
    "0 s", "59 s", "1 min", "1 h 5 min", "10 h", "2 d",
  ]);
  assert.deepEqual([0, -5, 1, 61_000, 3_600_000].map(countdown), ["0:00", "0:00", "0:01", "1:01", "1:00:00"]);
  assert.deepEqual([7, 12_345, 456_000, 1_200_000].map(tokens), ["7", "12.3k", "456k", "1.2M"]);
});

test("a log has no doubles and says what it misses", () => {
  let log = append(startAt(10), [event(11), event(12), event(12), event(15)]);
  assert.deepEqual(seqs(log.events), [11, 12, 15]);
  assert.deepEqual(log.gaps, [{ from: 13, to: 14 }]);
  log = skip(log, { from: 14, to: 20 });
  assert.deepEqual(log.gaps, [{ from: 13, to: 14 }, { from: 16, to: 20 }]);
  log = append(log, [event(21)]);
  assert.deepEqual(log.gaps.length, 2);

  log = fill(log, [event(13), event(14), event(15), event(16), event(17)], 12, 17);
  assert.deepEqual(seqs(log.events), [11, 12, 13, 14, 15, 16, 17, 21]);
  assert.deepEqual(log.gaps, [{ from: 18, to: 20 }]);
  assert.equal(log.first, 11);
  log = fill(log, [event(9), event(10)], 8, 10);
  assert.equal(log.first, 9);
});

test("pages that do not reach what is known leave the beginning where it was", () => {
  assert.equal(fill(startAt(100), [event(1)], 0, 50).first, 101);
});

test("a log is bounded", () => {
  const many = Array.from({ length: MOST_EVENTS + 5 }, (_, i) => event(i + 2));
  const log = append(startAt(0), many);
  assert.equal(log.events.length, MOST_EVENTS);
  assert.equal(log.first, 7);
  assert.deepEqual(log.gaps, []);
});

test("gaps stand where something is missing", () => {
  const log = append(startAt(0), [event(1), event(4, "paused"), event(9)]);
  const shown = entries(log, (one) => one.kind === "agent_text");
  assert.deepEqual(
    shown.map((entry) => ("gap" in entry ? `${entry.gap.from}-${entry.gap.to}` : entry.event.seq)),
    [1, "2-3", "5-8", 9],
  );
});

test("agents are trees, even with a ring or without their parent", () => {
  const agents = [agent("child", "top"), agent("top"), agent("orphan", "gone"), agent("x", "y"), agent("y", "x")];
  const roots = tree(agents);
  assert.ok(roots.some((root) => root.agent.id === "top" && root.children[0]?.agent.id === "child"));
  assert.ok(roots.some((root) => root.agent.id === "orphan"));
  const count = (branches: typeof roots): number =>
    branches.reduce((sum, branch) => sum + 1 + count(branch.children), 0);
  assert.equal(count(roots), agents.length);
});

test("an abort ends what is below and has not ended", () => {
  const agents = [agent("grandchild", "child"), agent("top"), agent("child", "top"), agent("old", "top", "done"), agent("other")];
  assert.deepEqual(descendants(agents, "top").map((one) => one.id).sort(), ["child", "grandchild"]);
});

test("why an agent cannot be steered", () => {
  assert.match(whyNotSteerable(agent("a", null, "done")) ?? "", /has ended/);
  assert.match(whyNotSteerable(agent("a", null, "queued")) ?? "", /not begun/);
  assert.equal(whyNotSteerable({ ...agent("a"), notSteerable: "a command" }), "a command");
  assert.equal(whyNotSteerable(agent("a")), null);
});

test("a receipt only moves forward, and never beyond an end", () => {
  const sent: Receipt = { steerId: "s", agent: "a", state: "sending", reached: {} };
  let receipt = advance(sent, "queued", "t1");
  receipt = advance(receipt, "handed", "t0");
  assert.equal(receipt.state, "queued");
  assert.deepEqual(receipt.reached, { queued: "t1", handed: "t0" });
  receipt = advance(receipt, "dropped", "t2", "it was aborted");
  assert.equal(advance(receipt, "answered", "t3").state, "dropped");
  assert.equal(receipt.reason, "it was aborted");
});

test("receipts come from the record, with what a person said", () => {
  const found = receipts([
    event(1, "human_intervention", { act: "steer", steerId: "s", text: "look \u001b[1mthere" }),
    event(2, "steer", { steerId: "s", state: "accepted" }),
    event(3, "steer", { steerId: "s", state: "handed" }),
    event(4, "steer", { steerId: "s", state: "invented" }),
  ]);
  const receipt = found.get("s");
  assert.equal(receipt?.state, "handed");
  assert.equal(receipt?.text, "look \\u{1b}[1mthere");
  const own: Receipt = { steerId: "s", agent: "a", state: "sending", text: "look \\u{1b}[1mthere", reached: {} };
  assert.equal(joined(own, receipt).state, "handed");
  assert.equal(joined(own, undefined).state, "sending");
});

test("what needs a person: what waits longest first, an agent that asked only once", () => {
  const request = (id: string, since: string, state: "open" | "taken" = "open", who = "a") =>
    ({ requestId: id, agent: who, reason: "r", state, since });
  const found = needs(
    [
      {
        id: "s",
        agents: [agent("a", null, "waiting"), agent("b", null, "waiting"), agent("c", null, "waiting")],
        requests: [
          request("r2", "2026-01-01T00:00:02Z"),
          request("r1", "2026-01-01T00:00:01Z"),
          request("r3", "2026-01-01T00:00:00Z", "taken", "c"),
        ],
      },
    ],
    [{ session: "s", desktop: "d1", from: "ada", note: null, since: 5 }],
    Date.parse("2026-01-02T00:00:00Z"),
  );
  assert.deepEqual(found.map((need) => need.key), ["s/d1/asked", "s/r1", "s/r2", "s/b/waiting"]);
});

test("a transcript joins texts, pairs tool calls and shows a steer once", () => {
  const log = append(startAt(0), [
    event(1, "agent_text", { text: "Hel" }),
    event(2, "agent_text", { text: "lo" }),
    event(3, "agent_tool", { tool: "bash", state: "start", callId: "c", summary: "ls" }),
    event(4, "agent_tool", { tool: "bash", state: "end", callId: "c" }),
    event(5, "human_intervention", { act: "steer", steerId: "s", text: "stop" }),
    event(6, "steer", { steerId: "s", state: "accepted" }),
    event(9, "agent_text", { text: "end", elided: 700 }),
  ]);
  const pieces = transcript(entries(log, () => true));
  assert.deepEqual(pieces.map((piece) => piece.kind), ["text", "tool", "steer", "gap", "elided", "text"]);
  const [text, tool] = pieces;
  assert.ok(text?.kind === "text" && text.text === "Hello");
  assert.ok(tool?.kind === "tool" && tool.ended && tool.summary === "ls");
});

test("the timeline is filtered, and knows its pictures", () => {
  const taken = event(1, "takeover_return", { desktop: "d1", screenshot: "/x/evidence/a b.png", source: "human" });
  assert.equal(groupOf(taken.kind), "control");
  assert.equal(pictureOf(taken), "a b.png");
  assert.ok(matches(ALL, taken));
  assert.ok(matches({ ...ALL, group: "control", source: "human", desktop: "d1", pictures: true }, taken));
  assert.ok(!matches({ ...ALL, desktop: "d2" }, taken));
  assert.ok(!matches({ ...ALL, agent: "b" }, taken));
  assert.ok(!matches({ ...ALL, pictures: true }, event(2)));
});

test("events in words", () => {
  assert.equal(told(event(1, "desktop_click", { x: 3, y: 4, outcome: "done" })), "click at 3, 4");
  assert.equal(
    told(event(1, "desktop_type", { chars: 5, outcome: "refused", code: "human_control_active" })),
    "types 5 characters: refused (human control active)",
  );
  assert.equal(
    told(event(1, "takeover_return", { heldMs: 61_000, note: "done\u001b[2J" })),
    "control given back after 1 min, with the note: done\\u{1b}[2J",
  );
  assert.equal(told(event(1, "something_new")), "something new");
});

test("who paused a desktop is said only where it is known", () => {
  assert.match(pauseWords("requested"), /A person paused it/);
  assert.match(pauseWords("foreign_connection"), /past the gate/);
  assert.equal(pauseWords(undefined), "Nobody acts until it is resumed.");
});
