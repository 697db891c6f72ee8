import type { ControlStatus, DesktopView, End, LeaseView, PauseReason } from "../wire/types.ts";

/** What can be shown of a desktop, whether from a list or its own status. */
export type Standing = Pick<DesktopView, "control" | "phase"> & { lease?: LeaseView; pauseReason?: PauseReason };

/** Who may act on a desktop, in a few words. */
export function controlWords(desktop: Standing): string {
  if (desktop.phase === "draining") return "changing to a person";
  if (desktop.phase === "returning") return "going back to the agents";
  switch (desktop.control) {
    case "human":
      return "a person is in control";
    case "paused":
      return "paused";
    default:
      return "agents in control";
  }
}

/** Why nobody may act, in a sentence that says what to do. */
export function pauseWords(reason: PauseReason | undefined): string {
  switch (reason) {
    case "foreign_connection":
      return "A program connected to the display past the gate, so nobody may act. Find and end it, then resume.";
    case "display_unavailable":
      return "The display does not answer. It may be stopped or overloaded; it is resumed by itself when it answers.";
    case "desktop_gone":
      return "The display has ended. A new desktop can be made with: handover desktop new";
    case "requested":
      return "A person paused it. Nobody acts until it is resumed; you can still take control.";
    default:
      return "Nobody acts until it is resumed.";
  }
}

/** Width and height of a size such as `1280x800`. */
export function dimensions(size: string): { width: number; height: number } {
  const [width, height] = size.split("x").map(Number);
  return { width: width || 1280, height: height || 800 };
}

const ENDS: Record<End, string> = {
  return: "given back",
  cancelled: "cancelled",
  timeout: "ended by a time limit",
  revoked: "taken away",
  recovered: "lost with its connection",
};

/** How a takeover ended, in words. */
export function endWords(end: End): string {
  return ENDS[end] ?? end;
}

/** A list's entry brought up to date by the desktop's own status. */
export function withStatus(desktop: DesktopView, status: ControlStatus): DesktopView {
  const { control, phase, epoch } = status;
  const { lease: _former, ...rest } = desktop;
  return { ...rest, control, phase, epoch, ...(status.lease === undefined ? {} : { lease: status.lease }) };
}

/** The lease that is in the way, as a refusal names it. */
export function leaseOf(data: Readonly<Record<string, unknown>>): LeaseView | null {
  const lease = data.lease;
  if (typeof lease !== "object" || lease === null) return null;
  const { leaseId, holder, since, expiresInMs } = lease as Partial<LeaseView>;
  if (typeof holder !== "string" || typeof since !== "string") return null;
  return { leaseId: leaseId ?? "", holder, since, expiresInMs: expiresInMs ?? 0, viewer: null };
}
