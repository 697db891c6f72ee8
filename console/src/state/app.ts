import { computed, effect, signal } from "@preact/signals";

import { needs as needsOf, type Asked } from "../model/needs.ts";
import { Controls } from "../control/controls.ts";
import { Live, type LinkState } from "../wire/live.ts";
import { goBy, present } from "./clock.ts";
import { instant } from "../model/time.ts";
import { route } from "./route.ts";
import { Session } from "./session.ts";
import type { LeaseEnded, LeaseRequest, LeaseRequestEnded, LeaseWarning, Scope, Sessions } from "../wire/types.ts";

/** How the connection to the console's server stands. */
export const link = signal<LinkState>("connecting");
/** What this browser may see; null until the server has said it. */
export const scope = signal<Scope | null>(null);
export const version = signal("");
export const home = signal<string | undefined>(undefined);
/** When the link ends by which this browser came, in milliseconds since the epoch; null if it lasts. */
export const linkEnds = computed(() => (scope.value?.kind === "desktop" ? instant(scope.value.expiresAt) : null));
/** The live sessions, oldest first, and those that this tab has seen end. */
export const sessions = signal<readonly Session[]>([]);

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
/** Where this server's WebSockets are. */
export const socketBase = `${scheme}//${location.host}/api`;

const live = new Live(`${socketBase}/live`, {
  state(state) {
    link.value = state;
    if (state === "lost") controls.connectionLost();
  },
  sessions: heardOfSessions,
  notice,
});

/** This tab's control of desktops. */
export const controls: Controls = new Controls(socketBase, (session) => find(session));

/** The session of that id, if this tab knows it. */
export function find(id: string): Session | undefined {
  return sessions.peek().find((session) => session.id === id);
}

/** Sessions whose hosts are live, and those of them that this tab listens to. */
let listed = new Set<string>();
let begun = new Set<string>();
/** Whether the other clock has been looked at: the first news of a connection have waited for nothing. */
let timed = false;
effect(() => {
  // With a new connection everything is to be subscribed to again.
  if (link.value === "open") return;
  begun = new Set();
  timed = false;
});

function heardOfSessions(heard: Sessions): void {
  const some = heard.scope.kind === "desktop";
  if (!timed) goBy(heard.now);
  timed = true;
  scope.value = heard.scope;
  version.value = heard.version;
  home.value = heard.home;
  const known = new Map(sessions.peek().map((session) => [session.id, session]));
  listed = new Set(heard.sessions.map((manifest) => manifest.sessionId));
  const now = heard.sessions.map((manifest) => {
    const session = known.get(manifest.sessionId) ?? new Session(live, manifest, some);
    if (session.manifest.peek().updatedAt !== manifest.updatedAt) {
      session.manifest.value = manifest;
      session.refresh();
    }
    return session;
  });
  const here = route.peek();
  for (const session of known.values()) {
    if (listed.has(session.id)) continue;
    session.closed("Its host has ended. What is shown is what was known then.");
    begun.delete(session.id);
    // A session that ended stays as long as the person is looking at it.
    if (here.at !== "home" && here.session === session.id) now.push(session);
  }
  sessions.value = now.slice(0, MOST_SESSIONS);
  begin();
}

/** Listens to all that are live and not listened to. */
function begin(): void {
  const fresh = sessions.peek().filter(({ id }) => listed.has(id) && !begun.has(id));
  for (const session of fresh) {
    begun.add(session.id);
    void session.begin();
  }
  controls.connected(fresh.map(({ id }) => id));
}

/** Sessions that are shown; far more than anybody can supervise. */
const MOST_SESSIONS = 200;
/** A host that closed its connection and is still there is listened to again after so long, in milliseconds. */
const AGAIN_MS = 3_000;

function notice(id: string, method: string, params: unknown): void {
  const session = find(id);
  if (session === undefined) return;
  switch (method) {
    case "lease_warning":
      controls.warned(id, params as LeaseWarning);
      return;
    case "lease_request":
      controls.asked(id, params as LeaseRequest);
      return;
    case "lease_request_ended":
      controls.withdrawn(id, params as LeaseRequestEnded);
      return;
    case "silent":
      controls.connectionLost(id);
      session.fallsSilent();
      return;
    case "answers":
      session.answers();
      controls.connected([id]);
      return;
    case "lease_ended":
      controls.ended(id, params as LeaseEnded);
      session.refresh();
      return;
    case "closed":
      session.closed(String((params as { message?: unknown } | null)?.message ?? "Its host went away."));
      begun.delete(id);
      controls.connectionLost(id);
      setTimeout(() => link.peek() === "open" && begin(), AGAIN_MS);
      return;
    default:
      session.hear(method, params);
  }
}

/** The sessions as they are listed: those in which a person is needed first. */
export const listedSessions = computed(() => {
  const needy = new Set(needs.value.map((need) => need.session));
  const first = (session: Session) => needy.has(session.id);
  return [...sessions.value.filter(first), ...sessions.value.filter((session) => !first(session))];
});

/** What only a person can do now, in all sessions. */
export const needs = computed(() => {
  const asking = sessions.value.flatMap((session) => {
    const list = session.list.value;
    if (list === null || session.problem.value !== null) return [];
    return [{ id: session.id, agents: list.agents, requests: list.requests ?? [] }];
  });
  const asked: Asked[] = [];
  for (const control of controls.all.value) {
    const standing = control.standing.value;
    if (standing.kind !== "held" || standing.asked === null || standing.asked.given) continue;
    asked.push({ session: control.session, desktop: control.desktop, ...standing.asked });
  }
  return needsOf(asking, asked, present());
});
