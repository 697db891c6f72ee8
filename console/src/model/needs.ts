import type { AgentView, RequestView } from "../wire/types.ts";
import { cleanLine } from "./text.ts";

/** Something that only a person can do now. */
export interface Need {
  /** The same as long as it is the same need. */
  key: string;
  session: string;
  kind: "request" | "waiting" | "asked";
  /** In milliseconds since the epoch; of an agent that waits, when it began. */
  since: number;
  agent?: AgentView;
  desktop?: string;
  request?: RequestView;
  /** Whoever asks for control, and why. */
  from?: string;
  note?: string;
}

/** What a session says of itself, as far as needs go. */
export interface Asking {
  id: string;
  agents: readonly AgentView[];
  requests: readonly RequestView[];
}

/** A request for this tab's control of a desktop. */
export interface Asked {
  session: string;
  desktop: string;
  from: string;
  note: string | null;
  since: number;
}

/** All that needs a person, what waits longest first; those who ask for this tab's control before all others. */
export function needs(sessions: readonly Asking[], asked: readonly Asked[], now: number): Need[] {
  const found: Need[] = [];
  for (const { session, desktop, from, note, since } of asked) {
    const need: Need = { key: `${session}/${desktop}/asked`, session, kind: "asked", since, desktop, from };
    found.push(note === null ? need : { ...need, note });
  }
  const rest: Need[] = [];
  for (const session of sessions) rest.push(...ofSession(session, now));
  rest.sort((a, b) => a.since - b.since);
  return [...found, ...rest];
}

function ofSession(session: Asking, now: number): Need[] {
  const found: Need[] = [];
  const asking = new Set<string>();
  for (const request of session.requests) {
    if (request.agent !== undefined) asking.add(request.agent);
    // What somebody has taken on needs nobody else.
    if (request.state !== "open") continue;
    const agent = session.agents.find((one) => one.id === request.agent);
    found.push({
      key: `${session.id}/${request.requestId}`,
      session: session.id,
      kind: "request",
      since: Date.parse(request.since) || now,
      request,
      ...(agent === undefined ? {} : { agent }),
      ...(request.desktop === undefined ? {} : { desktop: request.desktop }),
    });
  }
  for (const agent of session.agents) {
    if (agent.status !== "waiting" || asking.has(agent.id)) continue;
    const since = Date.parse(agent.startedAt ?? "") || now;
    found.push({ key: `${session.id}/${agent.id}/waiting`, session: session.id, kind: "waiting", since, agent });
  }
  return found;
}

/** A need in one line, for a notification. */
export function needLine(need: Need): string {
  const who = cleanLine(need.agent?.name ?? need.request?.agent ?? "An agent", 60);
  switch (need.kind) {
    case "asked":
      return `${cleanLine(need.from, 80)} asks you for control of ${need.desktop ?? "a desktop"}`;
    case "waiting":
      return `${who} waits for a person`;
    default:
      return `${who}: ${cleanLine(need.request?.question ?? need.request?.reason, 160)}`;
  }
}
