import { leaseOf } from "../control/lease.ts";
import { controlWords } from "../model/desktops.ts";
import { controls, link } from "../state/app.ts";
import type { Session } from "../state/session.ts";
import type { DesktopView } from "../wire/types.ts";

/** Who has control of a desktop, as far as this tab knows: in words, with the name of its colour. */
export interface Who {
  words: string;
  tone: "mine" | "unknown" | DesktopView["control"];
  /** Whether this tab has it, or had it a moment ago and takes it up again. */
  mine: boolean;
}

/** Whether this tab hears what happens in a session; else what it shows is from before. */
export function isHeard(session: Session): boolean {
  return session.problem.value === null && link.value === "open";
}

/** Who has control of `desktop`. */
export function who(session: Session, desktop: DesktopView): Who {
  const control = controls.all.value.find((one) => one.session === session.id && one.desktop === desktop.id);
  const standing = control?.standing.value;
  if (standing !== undefined && leaseOf(standing) !== null) {
    return { words: standing.kind === "lost" ? "connection broken" : "you are in control", tone: "mine", mine: true };
  }
  if (!isHeard(session)) return { words: "not known now", tone: "unknown", mine: false };
  return { words: controlWords(desktop), tone: desktop.control, mine: false };
}
