import { signal } from "@preact/signals";

import type { Receipt } from "../model/receipts.ts";
import { advance } from "../model/receipts.ts";
import { CONNECTION_LOST, Refusal } from "../wire/refusal.ts";
import type { SteerResult, SteerWhen } from "../wire/types.ts";
import { present } from "./clock.ts";
import type { Session } from "./session.ts";

/** A steer that this tab sent, to be sent again if nobody knows whether it came. */
export interface Sent {
  session: string;
  /** None: as the agent's program takes it. */
  when: SteerWhen | undefined;
  receipt: Receipt;
}

/** Steers of this tab that are kept; the record has them all. */
const MOST = 200;

/** Codes with which a call ends that the host may have carried out: it broke off, died, or was too slow. */
const UNANSWERED = new Set([CONNECTION_LOST, "session_unknown", "timeout"]);

/** What this tab sent, oldest first. */
export const sent = signal<readonly Sent[]>([]);

/** Says something to an agent. */
export async function steer(session: Session, agent: string, text: string, when?: SteerWhen): Promise<void> {
  const receipt: Receipt = { steerId: newId(), agent, state: "sending", text, reached: {} };
  const one: Sent = { session: session.id, when, receipt };
  sent.value = [...sent.peek().slice(1 - MOST), one];
  await send(session, one);
}

/** Sends one again under its own id: if it came after all, it is the same steer and not said twice. */
export async function again(session: Session, { when, receipt }: Sent): Promise<void> {
  const { reason: _former, ...rest } = receipt;
  const one: Sent = { session: session.id, when, receipt: { ...rest, state: "sending" } };
  replace(one);
  await send(session, one);
}

async function send(session: Session, one: Sent): Promise<void> {
  const { steerId, agent, text } = one.receipt;
  try {
    const answer = await session.act<SteerResult>("steer", {
      id: agent,
      text,
      steerId,
      ...(one.when === undefined ? {} : { when: one.when }),
    });
    replace({ ...one, receipt: advance(one.receipt, answer.state, new Date(present()).toISOString(), answer.reason) });
  } catch (thrown) {
    const { code, message } = Refusal.of(thrown);
    // Without the host's own answer it stays unknown whether it was accepted.
    const state = UNANSWERED.has(code) ? "sending" : "unsent";
    replace({ ...one, receipt: { ...one.receipt, state, reason: message } });
  }
}

function replace(one: Sent): void {
  sent.value = sent.peek().map((other) => (other.receipt.steerId === one.receipt.steerId ? one : other));
}

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `st-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
