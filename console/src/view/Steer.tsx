import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { cleanLine } from "../model/text.ts";
import { draft, drop, write } from "../state/drafts.ts";
import type { Session } from "../state/session.ts";
import { steer } from "../state/steers.ts";
import type { AgentView, SteerWhen } from "../wire/types.ts";

/** The first leaves it to the program: not each can be told before its next step. */
const WHEN: readonly { value: SteerWhen | ""; label: string }[] = [
  { value: "", label: "as soon as it can take it" },
  { value: "next_step", label: "before its next step" },
  { value: "now", label: "now, cutting short what it does" },
  { value: "turn_end", label: "at the end of its turn" },
];

/** Says something to an agent that runs. */
export function Steer({ session, agent }: { session: Session; agent: AgentView }): JSX.Element {
  // Signals, since what was typed and chosen last must not wait for the next frame.
  const name = `steer/${session.id}/${agent.id}`;
  const text = draft(name);
  const when = useSignal<SteerWhen | "">("");
  const send = () => {
    const said = text.peek();
    if (said.trim() === "") return;
    void steer(session, agent.id, said, when.peek() || undefined);
    drop(name);
  };
  return (
    <form
      class="steer-box"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="grow">
        <span class="visually-hidden">Message to {cleanLine(agent.name, 60)}</span>
        <textarea
          rows={2}
          value={text.value}
          onInput={(event) => write(name, event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            send();
          }}
          placeholder={`Say something to ${cleanLine(agent.name, 40)}`}
          data-testid="steer-text"
        />
      </label>
      <div class="steer-how">
        <label>
          <span class="visually-hidden">When it is put to the agent</span>
          <select
            value={when.value}
            onChange={(event) => (when.value = event.currentTarget.value as SteerWhen | "")}
            data-testid="steer-when"
          >
            {WHEN.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="primary" disabled={text.value.trim() === ""} title="Ctrl+Enter" data-testid="steer-send">
          Steer
        </button>
      </div>
    </form>
  );
}
