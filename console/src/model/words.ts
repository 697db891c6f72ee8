import { endWords } from "./desktops.ts";
import { statusWord } from "./agents.ts";
import { meaning } from "./receipts.ts";
import { clean, cleanLine } from "./text.ts";
import { age } from "./time.ts";
import type { AgentStatus, End, Event, SteerState } from "../wire/types.ts";

/** An event in one line. Whatever an agent or a program wrote in it is made harmless. */
export function told(event: Event): string {
  const text = (name: string, most = 200) => cleanLine(event[name], most);
  const because = (name: string) => (text(name) === "" ? "" : `: ${text(name)}`);
  switch (event.kind) {
    case "agent_spawned":
      return `begins as ${text("name", 80)} (${text("agentType", 40)})`;
    case "agent_status":
      return `is ${statusWord(event.status as AgentStatus)}${because("error")}`;
    case "agent_text":
      return text("text", 400);
    case "agent_tool":
      return `${event.state === "end" ? "ended" : "calls"} ${text("tool", 80)}${because("summary")}`;
    case "steer":
      return `steer ${text("steerId", 60)}: ${meaning(event.state as SteerState)}${because("reason")}`;
    case "human_intervention":
      return intervention(event);
    case "takeover_start":
      return `${text("holder", 80) || "a person"} took control${because("note")}`;
    case "paused":
      return `paused${because("reason")}`;
    case "resumed":
      return "resumed";
    case "request_human":
      return `asks for a person: ${text("question") || text("reason")}`;
    case "request_answered":
      return `was answered${because("text")}`;
    case "relay_refused":
      return `call of ${text("tool", 80)} was refused (${text("code", 40)})`;
    case "call_refused":
      return `${text("method", 80)} was refused (${text("code", 40)})`;
    case "foreign_connection":
      return "a program connected to the display past the gate";
    case "gap":
      return `events ${String(event.from)} to ${String(event.to)} could not be stored`;
    case "record_mended":
      return `the record was damaged and is whole again${because("reason")}`;
    default:
      if (event.kind.startsWith("takeover_")) return takeoverEnd(event);
      if (event.kind.startsWith("desktop_")) return action(event);
      return cleanLine(event.kind.replaceAll("_", " "), 80);
  }
}

function intervention(event: Event): string {
  switch (event.act) {
    case "steer":
      return `a person says: ${cleanLine(event.text, 400)}`;
    case "abort":
      return "a person ended the agent";
    case "secret":
      return "a person typed a secret (its text is stored nowhere)";
    default:
      return `a person: ${cleanLine(event.act, 60)}`;
  }
}

function takeoverEnd(event: Event): string {
  const end = endWords(event.kind.slice("takeover_".length) as End);
  const held = typeof event.heldMs === "number" ? ` after ${age(event.heldMs)}` : "";
  const note = cleanLine(event.note, 400);
  const cause = cleanLine(event.cause, 60).replaceAll("_", " ");
  return `control ${end}${held}${cause === "" ? "" : ` (${cause})`}${note === "" ? "" : `, with the note: ${note}`}`;
}

/** What an agent did on a desktop. */
export function action(event: Event): string {
  const done = doing(event);
  if (event.outcome === "done" || event.outcome === undefined) return done;
  const code = cleanLine(event.code, 40).replaceAll("_", " ");
  return `${done}: ${event.outcome === "refused" ? "refused" : "failed"}${code === "" ? "" : ` (${code})`}`;
}

function doing(event: Event): string {
  const at = typeof event.x === "number" && typeof event.y === "number" ? ` at ${event.x}, ${event.y}` : "";
  switch (event.kind) {
    case "desktop_click":
      return `click${at}`;
    case "desktop_double_click":
      return `double click${at}`;
    case "desktop_move":
      return `pointer${at === "" ? " moved" : at.replace(" at", " to")}`;
    case "desktop_scroll":
      return `scroll${at}`;
    case "desktop_drag":
      return `drag${at.replace(" at", " to")}`;
    case "desktop_type":
      return typeof event.chars === "number" ? `types ${event.chars} characters` : "types";
    case "desktop_key":
      return `presses ${cleanLine(event.keys, 60) || "a key"}`;
    case "desktop_launch":
      return "starts a program";
    case "desktop_screenshot":
      return "takes a screenshot";
    default:
      return cleanLine(event.kind.slice("desktop_".length).replaceAll("_", " "), 60);
  }
}

/** Where on its desktop an action took place, in pixels. */
export function placeOf(event: Event): { x: number; y: number } | null {
  const { x, y } = event;
  return typeof x === "number" && typeof y === "number" ? { x, y } : null;
}

/** Whose doing an event is, in words. */
export function whose(event: Event): string {
  switch (event.source) {
    case "human":
      return "person";
    case "agent":
      return event.actor?.agent ?? event.agent ?? "agent";
    case "app":
      return "program";
    default:
      return "host";
  }
}

/** What an agent said, whole, for a transcript. */
export function said(event: Event): string {
  return clean(event.text, 8_000);
}
