import type { End, Grant, LeaseRequest, LeaseRequestEnded, LeaseView, LeaseWarning } from "../wire/types.ts";

/** The terms on which this tab takes control. */
export interface Terms {
  /** Ends the lease after so long without input, in milliseconds. */
  idleMs: number;
  /** Ends the lease after so long in any case, in milliseconds. */
  maxMs?: number;
  private?: boolean;
  note?: string;
}

/** A lease of this tab: what it must present, and what it was promised. Kept over a reload. */
export interface Held {
  session: string;
  desktop: string;
  leaseId: string;
  token: string;
  heartbeatMs: number;
  terms: Terms;
  /** When it was granted, in milliseconds since the epoch. */
  since: number;
}

/** A request of another person for this tab's control. */
export interface Asked {
  from: string;
  note: string | null;
  since: number;
  /** Whether it is being given to them. */
  given: boolean;
}

/**
 * How this tab stands to the control of one desktop.
 *
 * - `free`: it does not have it. `after` says how its last takeover ended or why it was not granted.
 * - `taking`: it asked. Agents' actions are being waited for, or, with `ask`, another person's answer.
 * - `held`: it has it, and its input counts.
 * - `lost`: the connection broke. The lease lingers at the host for a while, and is taken up again as soon as there
 *   is a connection; until then no input counts.
 * - `returning`: it gives it back.
 */
export type Standing =
  | { kind: "free"; after: After | null }
  | { kind: "taking"; since: number; ask: boolean }
  | { kind: "held"; held: Held; inputAt: number; warning: Warning | null; asked: Asked | null }
  | { kind: "lost"; held: Held; since: number }
  | { kind: "returning"; held: Held };

/** A limit of a lease; `link` is the end of the link by which this browser came. */
export interface Warning {
  limit: LeaseWarning["limit"] | "link";
  /** When it is reached, in milliseconds since the epoch. */
  endsAt: number;
}

/**
 * How a lease ended: as the host says, `stale` if it does not know it any more, or `lost` if the connection was gone
 * for longer than the host keeps it.
 */
export type Ended = End | "stale" | "lost";

/** Why this tab does not have control any more, or did not get it: `by` whom it ended, and `to` whom it was given. */
export type After =
  | { kind: "ended"; leaseId: string; end: Ended; by: "me" | "other"; to: string | null; at: number }
  | { kind: "refused"; code: string; message: string; lease: LeaseView | null; at: number };

/** What happens to a lease. */
export type Happening =
  | { kind: "take"; ask: boolean }
  | { kind: "granted"; held: Held }
  | { kind: "refused"; code: string; message: string; lease: LeaseView | null }
  | { kind: "input" }
  | { kind: "warning"; warning: LeaseWarning }
  | { kind: "asked"; request: LeaseRequest }
  | { kind: "answered"; give: boolean }
  | { kind: "withdrawn"; request: LeaseRequestEnded }
  | { kind: "cancelled" }
  | { kind: "connection_lost" }
  | { kind: "reclaimed"; grant: Grant }
  | { kind: "return" }
  | { kind: "return_failed" }
  | { kind: "ended"; leaseId: string; end: Ended };

export const FREE: Standing = { kind: "free", after: null };

/** How this tab stands after something happened at `now`. What does not fit the state changes nothing. */
export function next(standing: Standing, happening: Happening, now: number): Standing {
  switch (happening.kind) {
    case "take":
      return standing.kind === "free" ? { kind: "taking", since: now, ask: happening.ask } : standing;
    case "granted":
      return held(happening.held, now);
    case "refused": {
      if (standing.kind !== "taking") return standing;
      const { code, message, lease } = happening;
      return { kind: "free", after: { kind: "refused", code, message, lease, at: now } };
    }
    case "input":
      if (standing.kind !== "held") return standing;
      return { ...standing, inputAt: now, warning: standing.warning?.limit === "idle" ? null : standing.warning };
    case "warning": {
      if (standing.kind !== "held" || standing.held.leaseId !== happening.warning.leaseId) return standing;
      const { limit, leftMs } = happening.warning;
      return { ...standing, warning: { limit, endsAt: now + leftMs } };
    }
    case "asked": {
      if (standing.kind !== "held" || standing.held.leaseId !== happening.request.leaseId) return standing;
      const { from, note } = happening.request;
      return { ...standing, asked: { from, note, since: now, given: false } };
    }
    case "answered": {
      if (standing.kind !== "held" || standing.asked === null) return standing;
      return { ...standing, asked: happening.give ? { ...standing.asked, given: true } : null };
    }
    case "withdrawn": {
      const { leaseId, from } = happening.request;
      if (standing.kind !== "held" || standing.held.leaseId !== leaseId) return standing;
      // What is being given to them has been answered.
      return standing.asked?.from === from && !standing.asked.given ? { ...standing, asked: null } : standing;
    }
    case "cancelled":
      return standing.kind === "taking" ? FREE : standing;
    case "connection_lost":
      if (standing.kind !== "held" && standing.kind !== "returning") return standing;
      return { kind: "lost", held: standing.held, since: now };
    case "reclaimed":
      if (standing.kind !== "lost" || standing.held.leaseId !== happening.grant.leaseId) return standing;
      return held({ ...standing.held, token: happening.grant.token, heartbeatMs: happening.grant.heartbeatMs }, now);
    case "return":
      return standing.kind === "held" || standing.kind === "lost" ? { kind: "returning", held: standing.held } : standing;
    case "return_failed":
      return standing.kind === "returning" ? held(standing.held, now) : standing;
    case "ended": {
      const { leaseId, end } = happening;
      const lease = leaseOf(standing);
      if (lease === null) return toldLate(standing, leaseId, end);
      if (lease.leaseId !== leaseId) return standing;
      const by = standing.kind === "returning" ? "me" : "other";
      const to = standing.kind === "held" && standing.asked?.given === true ? standing.asked.from : null;
      return { kind: "free", after: { kind: "ended", leaseId, end, by, to, at: now } };
    }
  }
}

/** The host tells how a lease ended after this tab had to say that it does not know. */
function toldLate(standing: Standing, leaseId: string, end: Ended): Standing {
  if (standing.kind !== "free" || standing.after?.kind !== "ended") return standing;
  const { after } = standing;
  if (after.leaseId !== leaseId || after.end !== "stale") return standing;
  return { kind: "free", after: { ...after, end } };
}

function held(lease: Held, now: number): Standing {
  return { kind: "held", held: lease, inputAt: now, warning: null, asked: null };
}

/** The lease that this tab has, if it has one. */
export function leaseOf(standing: Standing): Held | null {
  return standing.kind === "held" || standing.kind === "lost" || standing.kind === "returning" ? standing.held : null;
}

/** The end of a link is announced when a quarter of its time in control is left, but this much at most, in milliseconds. */
const LINK_WARNING_MS = 60_000;

/** What a person in control is warned of, if anything: what the host warned of, or the near end of the link. */
export function warning(standing: Standing, linkEnds: number | null, now: number): Warning | null {
  const near = limit(standing, linkEnds);
  if (standing.kind !== "held" || near === null) return null;
  if (near.limit !== "link") return standing.warning;
  const ahead = Math.min(LINK_WARNING_MS, (near.endsAt - standing.held.since) / 4);
  return near.endsAt - now <= ahead ? near : standing.warning;
}

/**
 * What ends a held lease first, and when in milliseconds since the epoch; `linkEnds` is when the link does, if this
 * browser came by one. The host decides; its warnings, which know better, go before the count of this tab.
 */
export function limit(standing: Standing, linkEnds: number | null): Warning | null {
  if (standing.kind !== "held") return null;
  const { held, inputAt, warning } = standing;
  const limits: Warning[] = [];
  if (linkEnds !== null) limits.push({ limit: "link", endsAt: linkEnds });
  if (warning !== null) limits.push(warning);
  if (warning?.limit !== "idle") limits.push({ limit: "idle", endsAt: inputAt + held.terms.idleMs });
  if (held.terms.maxMs !== undefined && warning?.limit !== "maximum") {
    limits.push({ limit: "maximum", endsAt: held.since + held.terms.maxMs });
  }
  limits.sort((a, b) => a.endsAt - b.endsAt);
  return limits[0] ?? null;
}
