import type { JSX } from "preact";

import { isFinal, meaning, STEPS, type Receipt } from "../model/receipts.ts";
import { clean } from "../model/text.ts";
import { clockTime } from "../model/time.ts";
import { now } from "../state/clock.ts";
import type { Session } from "../state/session.ts";
import { again, type Sent } from "../state/steers.ts";

/** What is known about a steer, and nothing that is only hoped for. */
export function ReceiptLine(props: { receipt: Receipt; mine: boolean; sent?: Sent; session?: Session }): JSX.Element {
  const { receipt, mine, sent, session } = props;
  const { steerId, state, reason, reached } = receipt;
  const tone = state === "answered" ? "good" : isFinal(state) || state === "unsent" ? "bad" : "going";
  const broken = state === "sending" && reason !== undefined;
  return (
    <p class={`receipt ${tone}`} data-testid={`receipt-${steerId}`} data-state={state} {...(mine ? { role: "status" } : {})}>
      <span class="steps" aria-hidden="true">
        {STEPS.filter((step) => reached[step] !== undefined).map((step) => (
          <i key={step} title={`${step} ${clockTime(reached[step], now.peek())}`} />
        ))}
      </span>
      <strong>{state}</strong>
      <span>{meaning(state)}</span>
      {reason !== undefined && <span class="reason">{clean(reason, 500)}</span>}
      {(broken || state === "unsent") && sent !== undefined && session !== undefined && (
        <button type="button" class="text-link" onClick={() => void again(session, sent)} data-testid={`again-${steerId}`}>
          Send again
        </button>
      )}
    </p>
  );
}
