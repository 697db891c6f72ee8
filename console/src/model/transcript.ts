import { said, told } from "./words.ts";
import { clean, cleanLine } from "./text.ts";
import type { Entry } from "./record.ts";
import type { Event, Gap } from "../wire/types.ts";

/** Who says something to an agent; `host` is Handover itself, as at a hand-back. */
export type Speaker = "person" | "agent" | "host";

/** One piece of an agent's transcript. */
export type Piece =
  | { kind: "text"; key: string; at: string; text: string }
  | { kind: "tool"; key: string; at: string; tool: string; summary: string; ended: boolean }
  | { kind: "steer"; key: string; at: string; steerId: string; text: string; from: Speaker }
  | { kind: "note"; key: string; at: string; text: string; tone: "plain" | "person" | "bad" }
  | { kind: "gap"; key: string; gap: Gap }
  | { kind: "elided"; key: string; bytes: number };

/** An agent may say its texts in very many pieces; together they stay below this, in characters. */
const LONGEST_TEXT = 16_000;

/** Whether an event belongs into the transcript of this agent. */
export function concerns(agent: string): (event: Event) => boolean {
  return (event) => event.agent === agent && !event.kind.startsWith("desktop_move");
}

/** An agent's record as a person reads it: pieces of text joined, each tool call once, each steer once. */
export function transcript(entries: readonly Entry[]): Piece[] {
  const pieces: Piece[] = [];
  const calls = new Map<string, number>();
  const steers = new Set<string>();
  for (const entry of entries) {
    if ("gap" in entry) pieces.push({ kind: "gap", key: `g${entry.gap.from}`, gap: entry.gap });
    else add(pieces, calls, steers, entry.event);
  }
  return pieces;
}

function add(pieces: Piece[], calls: Map<string, number>, steers: Set<string>, event: Event): void {
  const key = `e${event.seq}`;
  const { at } = event;
  switch (event.kind) {
    case "agent_text": {
      if (typeof event.elided === "number") pieces.push({ kind: "elided", key: `${key}-elided`, bytes: event.elided });
      const last = pieces.at(-1);
      const text = said(event);
      if (last?.kind === "text" && last.text.length + text.length <= LONGEST_TEXT) {
        pieces[pieces.length - 1] = { ...last, text: last.text + text };
      } else {
        pieces.push({ kind: "text", key, at, text });
      }
      return;
    }
    case "agent_tool":
      addTool(pieces, calls, event);
      return;
    case "steer": {
      // The receipt shows what becomes of it. A person's words are in the intervention; here are those of others.
      const id = String(event.steerId);
      if (typeof event.text !== "string" || steers.has(id)) return;
      steers.add(id);
      pieces.push({ kind: "steer", key, at, steerId: id, text: clean(event.text, 8_000), from: speaker(event.source) });
      return;
    }
    case "human_intervention":
      if (event.act === "steer" && typeof event.steerId === "string") {
        if (steers.has(event.steerId)) return;
        steers.add(event.steerId);
        const text = clean(event.text, 8_000);
        pieces.push({ kind: "steer", key, at, steerId: event.steerId, text, from: "person" });
      } else {
        pieces.push({ kind: "note", key, at, text: told(event), tone: "person" });
      }
      return;
    default: {
      const bad = event.status === "failed" || event.outcome === "refused" || event.outcome === "failed";
      const tone = event.source === "human" ? "person" : bad ? "bad" : "plain";
      pieces.push({ kind: "note", key, at, text: told(event), tone });
    }
  }
}

function speaker(source: Event["source"]): Speaker {
  if (source === "human") return "person";
  return source === "host" ? "host" : "agent";
}

function addTool(pieces: Piece[], calls: Map<string, number>, event: Event): void {
  const tool = cleanLine(event.tool, 80);
  const summary = clean(event.summary, 600);
  const call = typeof event.callId === "string" ? event.callId : `tool ${tool}`;
  const begun = calls.get(call);
  const piece = begun === undefined ? undefined : pieces[begun];
  if (event.state === "end" && begun !== undefined && piece?.kind === "tool" && !piece.ended) {
    pieces[begun] = { ...piece, ended: true, summary: piece.summary || summary };
    calls.delete(call);
    return;
  }
  calls.set(call, pieces.length);
  const ended = event.state === "end";
  pieces.push({ kind: "tool", key: `e${event.seq}`, at: event.at, tool, summary, ended });
}
