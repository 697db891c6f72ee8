import assert from "node:assert/strict";
import { test } from "node:test";

import { Chords, type KeyPress } from "../src/control/chord.ts";
import { keysymOf, typed } from "../src/control/keys.ts";
import { move, rows } from "../src/model/rows.ts";
import { shared, withNews } from "../src/model/shared.ts";
import type { AgentView, ListResult } from "../src/wire/types.ts";

function agent(id: string, parent: string | null, status: AgentView["status"]): AgentView {
  return { id, name: id, type: "pi", status, parent, depth: 0, task: "", startedAt: null, outputFile: null, pending: 0 };
}

const LIST: ListResult = {
  session: "s",
  desktops: [{ id: "d1", size: "800x600", control: "agent", phase: "steady", epoch: 1 }],
  agents: [agent("a", null, "running"), agent("b", "a", "running"), ...["w", "x", "y", "z"].map((id) => agent(id, null, "done"))],
  requests: [],
};

const usual = (_key: string, open: boolean) => open;

test("rows stand as in a tree, with what has ended folded away", () => {
  const list = rows([{ id: "s", list: LIST }, { id: "t", list: null }], usual);
  assert.deepEqual(
    list.map((row) => [row.key, row.level, row.place, row.siblings, row.open]),
    [
      ["s", 1, 1, 2, true],
      ["s/desktop/d1", 2, 1, 3, null],
      ["s/agent/a", 2, 2, 3, true],
      ["s/agent/b", 3, 1, 1, null],
      ["s/ended", 2, 3, 3, false],
      ["t", 1, 2, 2, null],
    ],
  );
  const open = rows([{ id: "s", list: LIST }], () => true);
  assert.equal(open.length, 9);
});

test("many sessions begin folded", () => {
  const many = Array.from({ length: 20 }, (_, index) => ({ id: `s${index}`, list: LIST }));
  assert.equal(rows(many, usual).length, 20);
});

test("arrow keys go through the tree", () => {
  const list = rows([{ id: "s", list: LIST }], usual);
  assert.deepEqual(move(list, 0, "ArrowDown"), { to: 1 });
  assert.deepEqual(move(list, 0, "ArrowUp"), { to: 0 });
  assert.deepEqual(move(list, 0, "ArrowLeft"), { fold: true });
  assert.deepEqual(move(list, 2, "ArrowRight"), { to: 3 });
  assert.deepEqual(move(list, 3, "ArrowLeft"), { to: 2 });
  assert.deepEqual(move(list, 4, "ArrowRight"), { fold: false });
  assert.deepEqual(move(list, 1, "End"), { to: 4 });
  assert.equal(move(list, 1, "x"), null);
  assert.equal(move([], 0, "ArrowDown"), null);
});

test("characters have their keysyms", () => {
  assert.deepEqual(["a", "ß", "é", "€", "Ω", "\n", "\t", "字"].map(keysymOf), [
    0x61, 0xdf, 0xe9, 0x010020ac, 0x010003a9, 0xff0d, 0xff09, 0x01005b57,
  ]);
});

test("what a phone's keyboard changed is what is typed", () => {
  assert.deepEqual(typed("__", "__a"), { deleted: 0, text: "a" });
  assert.deepEqual(typed("__helo", "__hello"), { deleted: 1, text: "lo" });
  assert.deepEqual(typed("__a", "__"), { deleted: 1, text: "" });
  assert.deepEqual(typed("__", "_"), { deleted: 1, text: "" });
  assert.deepEqual(typed("a👍", "a👎"), { deleted: 1, text: "👎" });
});

test("the app's own chords, and not the desktop's", () => {
  const chords = new Chords();
  const press = (type: KeyPress["type"], code: string, held: string) =>
    chords.hear({ type, code, ctrl: held.includes("c"), alt: held.includes("a"), shift: held.includes("s") });
  const together = () => {
    press("keydown", "ControlLeft", "c");
    press("keydown", "AltLeft", "ca");
    return press("keydown", "ShiftLeft", "cas");
  };
  assert.equal(together(), null);
  assert.equal(press("keyup", "AltLeft", "cs"), "leave");
  assert.equal(press("keyup", "ShiftLeft", "c"), null);
  together();
  assert.equal(press("keydown", "KeyP", "cas"), null);
  assert.equal(press("keyup", "KeyP", "cas"), null);
  assert.equal(press("keyup", "AltLeft", "cs"), null);
  together();
  assert.equal(press("keydown", "KeyX", "cas"), "emergency");
  assert.equal(press("keyup", "AltLeft", "cs"), null);
  press("keydown", "ControlLeft", "c");
  press("keydown", "AltLeft", "ca");
  assert.equal(press("keyup", "AltLeft", "c"), null);
});

test("what did not change in a list stays the same object", () => {
  const news = structuredClone(LIST);
  news.agents[1] = { ...agent("b", "a", "waiting") };
  const list = shared(LIST, news);
  assert.equal(list.agents[0], LIST.agents[0]);
  assert.equal(list.desktops[0], LIST.desktops[0]);
  assert.notEqual(list.agents[1], LIST.agents[1]);
  assert.deepEqual(list, news);
  assert.equal(shared(null, news), news);
});

test("how agents stand is known with the event", () => {
  const actor = { uid: 0, pid: 1, via: "" };
  const news = { seq: 1, at: "", kind: "agent_status", source: "host" as const, actor, agent: "b", status: "waiting" };
  const list = withNews(LIST, [news]);
  assert.equal(list.agents[1]?.status, "waiting");
  assert.equal(list.agents[0], LIST.agents[0]);
  assert.equal(withNews(LIST, []), LIST);
});
