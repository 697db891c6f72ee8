import type { Event, SteerState } from "../wire/types.ts";
import { clean } from "./text.ts";

/**
 * How a steer stands. `sending` is this tab's own: it was asked for and no answer has come, so it may or may not
 * have been accepted. It can be sent again under the same id without being said twice.
 */
export type ReceiptState = "sending" | "unsent" | SteerState;

export interface Receipt {
  steerId: string;
  agent: string;
  state: ReceiptState;
  /** What was said, where it is known. */
  text?: string;
  /** Why it was dropped or not accepted. */
  reason?: string;
  /** When each state was reached, as far as the record in this tab goes. */
  reached: Partial<Record<ReceiptState, string>>;
}

/** The way that a receipt goes; an end of its own is `dropped` or `unknown`. */
export const STEPS: readonly SteerState[] = ["accepted", "handed", "queued", "inserted", "sent", "answered"];

const ORDER: Record<ReceiptState, number> = {
  unsent: -2,
  sending: -1,
  accepted: 0,
  handed: 1,
  queued: 2,
  inserted: 3,
  sent: 4,
  answered: 5,
  dropped: 6,
  unknown: 6,
};

const MEANINGS: Record<ReceiptState, string> = {
  sending: "not yet accepted by the host",
  unsent: "not accepted",
  accepted: "stored by the host",
  handed: "about to be written to the program",
  queued: "the program has it",
  inserted: "in the agent's history",
  sent: "a request to the model held it",
  answered: "the model answered",
  dropped: "it will not arrive",
  unknown: "it may or may not have arrived",
};

/** A state in words. */
export function meaning(state: ReceiptState): string {
  return MEANINGS[state] ?? state;
}

/** Whether nothing more will be known. */
export function isFinal(state: ReceiptState): boolean {
  return state === "answered" || state === "dropped" || state === "unknown";
}

/** The receipt with one more thing known about it. It never moves back, and never beyond an end. */
export function advance(receipt: Receipt, state: ReceiptState, at: string | undefined, reason?: string): Receipt {
  const reached =
    at === undefined || receipt.reached[state] !== undefined ? receipt.reached : { ...receipt.reached, [state]: at };
  if (isFinal(receipt.state) || ORDER[state] <= ORDER[receipt.state]) return { ...receipt, reached };
  const moved: Receipt = { ...receipt, state, reached };
  if (reason !== undefined) moved.reason = reason;
  else delete moved.reason;
  return moved;
}

/** The receipts that events tell of, by steer, in order of their first appearance. */
export function receipts(events: readonly Event[]): Map<string, Receipt> {
  const found = new Map<string, Receipt>();
  for (const event of events) {
    if (event.kind !== "steer" && event.kind !== "human_intervention") continue;
    const { steerId, agent } = event;
    if (typeof steerId !== "string" || typeof agent !== "string") continue;
    const known = found.get(steerId) ?? { steerId, agent, state: "accepted" as const, reached: {} };
    if (event.kind === "human_intervention") {
      found.set(steerId, typeof event.text === "string" ? { ...known, text: clean(event.text) } : known);
    } else if (typeof event.state === "string" && event.state in ORDER) {
      const reason = typeof event.reason === "string" ? clean(event.reason, 500) : undefined;
      found.set(steerId, advance(known, event.state as SteerState, event.at, reason));
    }
  }
  return found;
}

/** What this tab sent, joined with what the record says of it. */
export function joined(own: Receipt, recorded: Receipt | undefined): Receipt {
  if (recorded === undefined) return own;
  const merged = advance(own, recorded.state, undefined, recorded.reason);
  const text = own.text ?? recorded.text;
  return { ...merged, reached: { ...own.reached, ...recorded.reached }, ...(text === undefined ? {} : { text }) };
}
