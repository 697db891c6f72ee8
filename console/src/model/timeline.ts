import type { Event, Source } from "../wire/types.ts";

/** Kinds of events that belong together. */
export type Group = "control" | "desktop" | "agent" | "steer" | "request" | "other";

export const GROUPS: readonly { group: Group; label: string }[] = [
  { group: "control", label: "Takeovers and pauses" },
  { group: "desktop", label: "Actions on desktops" },
  { group: "agent", label: "What agents say and do" },
  { group: "steer", label: "Steers and interventions" },
  { group: "request", label: "Requests for a person" },
  { group: "other", label: "Everything else" },
];

/** Where an event belongs. */
export function groupOf(kind: string): Group {
  if (kind.startsWith("takeover_") || kind === "paused" || kind === "resumed" || kind === "foreign_connection") {
    return "control";
  }
  if (kind.startsWith("desktop_")) return "desktop";
  if (kind.startsWith("agent_")) return "agent";
  if (kind === "steer" || kind === "human_intervention") return "steer";
  if (kind.startsWith("request_")) return "request";
  return "other";
}

/** What is shown of a record; an empty text stands for all. */
export interface Filter {
  group: Group | "";
  source: Source | "";
  agent: string;
  desktop: string;
  pictures: boolean;
}

export const ALL: Filter = { group: "", source: "", agent: "", desktop: "", pictures: false };

/** Whether an event is wanted. */
export function matches(filter: Filter, event: Event): boolean {
  if (filter.group !== "" && groupOf(event.kind) !== filter.group) return false;
  if (filter.source !== "" && event.source !== filter.source) return false;
  if (filter.agent !== "" && event.agent !== filter.agent && event.actor?.agent !== filter.agent) return false;
  if (filter.desktop !== "" && event.desktop !== filter.desktop) return false;
  return !filter.pictures || pictureOf(event) !== null;
}

/** The file name of the picture that was taken at an event, if any. */
export function pictureOf(event: Event): string | null {
  const path = event.screenshot;
  if (typeof path !== "string" || path === "") return null;
  return path.slice(path.lastIndexOf("/") + 1);
}
