import type { ComponentChildren, JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { ASK_MS, type DesktopControl } from "../control/desktop.ts";
import { limit, warning, type After, type Standing, type Warning } from "../control/lease.ts";
import { endWords, pauseWords } from "../model/desktops.ts";
import { cleanLine } from "../model/text.ts";
import { age, clockTime, countdown } from "../model/time.ts";
import { linkEnds } from "../state/app.ts";
import { now } from "../state/clock.ts";
import { draft, write } from "../state/drafts.ts";
import type { Session } from "../state/session.ts";
import { complain, say } from "../state/toasts.ts";
import type { DesktopView, LeaseView } from "../wire/types.ts";
import type { DrawerName } from "./Drawer.tsx";
import { Act, Confirm, Problem, sentence } from "./parts.tsx";
import { terms } from "./terms.ts";
import { isHeard } from "./who.ts";

interface Props {
  session: Session;
  view: DesktopView;
  control: DesktopControl;
  drawer: DrawerName | null;
  onDrawer: (name: DrawerName) => void;
}

/** Who has control, and the one click that takes or returns it. */
export function Strip(props: Props): JSX.Element {
  const { session, view, control } = props;
  const standing = control.standing.value;
  switch (standing.kind) {
    case "held":
      return <Held {...props} standing={standing} />;
    case "lost":
      return (
        <Bar tone="mine" testid="lost">
          {session.silent.value ? (
            <Words title="The host does not answer.">
              Control is taken up again if it soon does. Until then nothing you do counts.
            </Words>
          ) : (
            <Words title="The connection broke.">
              Control is taken up again if it is soon back. Until then nothing you do counts.
            </Words>
          )}
        </Bar>
      );
    case "returning":
      return (
        <Bar tone="mine" testid="returning">
          <Words title="Giving control back…">What was held down is released first.</Words>
        </Bar>
      );
    case "taking":
      return <Taking view={view} control={control} standing={standing} />;
    default:
      return <Free {...props} standing={standing} />;
  }
}

function Bar(props: {
  tone: string;
  testid?: string;
  bar?: RefObject<HTMLElement | null>;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <section ref={props.bar ?? null} class={`strip ${props.tone}`} tabIndex={-1} aria-label="Control" data-testid={props.testid}>
      {props.children}
    </section>
  );
}

function Words({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <p class="strip-words">
      <strong>{title}</strong> <span>{children}</span>
    </p>
  );
}

function Taking(props: {
  view: DesktopView;
  control: DesktopControl;
  standing: Extract<Standing, { kind: "taking" }>;
}): JSX.Element {
  const { view, control, standing } = props;
  const waited = Math.max(0, now.value - standing.since);
  return (
    <Bar tone="human" testid="taking">
      <i class="spinner" aria-hidden="true" />
      <p class="strip-words" role="status">
        {standing.ask ? (
          <>
            <strong>Asked for control.</strong>{" "}
            <span>
              Waiting for {view.lease === undefined ? "the person in control" : cleanLine(view.lease.holder, 80)} to answer, for
              another {countdown(ASK_MS - waited)}.
            </span>
          </>
        ) : (
          <>
            <strong>Taking control…</strong> <span>Waiting for the agent’s action to end, a few seconds at most.</span>
          </>
        )}
      </p>
      {standing.ask && (
        <button type="button" onClick={() => control.cancel()} data-testid="ask-cancel">
          Cancel
        </button>
      )}
    </Bar>
  );
}

function Free(props: Props & { standing: Extract<Standing, { kind: "free" }> }): JSX.Element {
  const { session, view, control, standing, drawer, onDrawer } = props;
  const heard = isHeard(session);
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    // The keyboard was at what returned control: it is not lost with it, and takes nothing by a key too many.
    const { after } = standing;
    const mine = after?.kind === "ended" && after.by === "me";
    if (mine && document.activeElement === document.body) bar.current?.focus({ preventScroll: true });
  }, []);
  const other = view.control === "human" ? view.lease : undefined;
  const take = (ask: boolean) => {
    const { note, ...rest } = terms.peek();
    // Why this once is not why the next time.
    terms.value = rest;
    void control.take(note === undefined ? rest : { ...rest, note }, ask);
  };
  return (
    <>
      <Bar bar={bar} tone={!heard ? "unknown" : other !== undefined ? "human" : view.control}>
        {!heard ? (
          <Words title="Who is in control is not known.">The session cannot be asked just now.</Words>
        ) : other !== undefined ? (
          <Other lease={other} />
        ) : view.control === "paused" ? (
          <Words title="Paused.">{pauseWords(control.pauseReason.value)}</Words>
        ) : view.control === "human" || view.phase === "returning" ? (
          <Words title="Control is going back to the agents.">What was held down is released first.</Words>
        ) : view.phase === "draining" ? (
          <Words title="A person is taking control.">What the agents have under way ends first.</Words>
        ) : (
          <Words title="The agents are in control.">You only watch: what you do in the picture goes nowhere.</Words>
        )}
        <span class="strip-buttons">
          <button
            type="button"
            class="quiet"
            aria-expanded={drawer === "terms"}
            onClick={() => onDrawer("terms")}
            data-testid="take-options"
          >
            Options
          </button>
          {other !== undefined ? (
            <>
              <TakeAway control={control} lease={other} disabled={!heard} />
              <button type="button" class="primary" onClick={() => take(true)} disabled={!heard} data-testid="ask-control">
                Ask for control
              </button>
            </>
          ) : (
            <button
              type="button"
              class="primary take"
              onClick={() => take(false)}
              disabled={!heard || view.phase === "returning"}
              data-testid="take-control"
            >
              Take control
            </button>
          )}
        </span>
      </Bar>
      {session.problem.value !== null && <Problem text={session.problem.value} />}
      {standing.after !== null && <Outcome after={standing.after} />}
    </>
  );
}

function Other({ lease }: { lease: LeaseView }): JSX.Element {
  const since = Date.parse(lease.since) || now.value;
  return (
    <p class="strip-words" data-testid="holder">
      <strong>{cleanLine(lease.holder, 80)} is in control</strong>{" "}
      <span>
        since {clockTime(lease.since, now.value)} ({age(now.value - since)}), for another {Math.ceil(lease.expiresInMs / 1000)} s
        unless renewed{lease.private === true ? "; agents get no picture meanwhile" : ""}.
      </span>
    </p>
  );
}

function TakeAway(props: { control: DesktopControl; lease: LeaseView; disabled: boolean }): JSX.Element {
  const { control, lease, disabled } = props;
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button type="button" class="quiet" onClick={() => setAsking(true)} disabled={disabled} data-testid="revoke">
        Take away…
      </button>
      {asking && (
        <Confirm
          title={`Take control of ${control.desktop} away?`}
          action="Take it away"
          danger
          testid="revoke"
          onClose={() => setAsking(false)}
          onConfirm={() => control.revoke()}
        >
          <p>
            {cleanLine(lease.holder, 80)} loses control at once, in the middle of what they do. The agents go on. Ask for
            control instead if it can wait.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** How the last takeover of this tab ended, or why there was none. */
function Outcome({ after }: { after: After }): JSX.Element {
  if (after.kind === "refused") {
    return (
      <div class="problem" role="alert" data-testid="refused">
        <strong>Control was not given.</strong> <span>{sentence(cleanLine(after.message, 500))}</span>
      </div>
    );
  }
  // What the person has just done is seen without words.
  const done = after.end === "return" && (after.by === "me" || after.to !== null);
  return (
    <p class={done ? "visually-hidden" : "after bad"} role="status" data-testid="after">
      {outcome(after)}
    </p>
  );
}

function outcome({ end, by, to }: Extract<After, { kind: "ended" }>): string {
  switch (end) {
    case "stale":
      return "Your control had already ended at the host, so it was not taken up again. The agents may be acting.";
    case "lost":
      return "Your control has ended: the connection was gone for longer than it is kept for you. The agents may be acting.";
    case "return":
      if (by === "me") return "You gave control back.";
      return to === null ? "Your control was given back from elsewhere." : `You gave control to ${cleanLine(to, 80)}.`;
    default:
      return `Your control was ${endWords(end)}.`;
  }
}

const LIMITS: Record<Warning["limit"], string> = {
  idle: "without input",
  maximum: "in any case",
  link: "with this link",
};

const WARNINGS: Record<Warning["limit"], string> = {
  idle: "Nothing was typed or pointed for a while. Control ends soon.",
  maximum: "The longest time of this takeover is nearly over. Control ends soon, whatever you do.",
  link: "The time of this link is nearly over. Control ends with it, whatever you do.",
};

function Held(props: Props & { standing: Extract<Standing, { kind: "held" }> }): JSX.Element {
  const { control, standing, drawer, onDrawer } = props;
  // A signal, since what was typed last must not wait for the next frame.
  const name = `note/${standing.held.leaseId}`;
  const note = draft(name);
  const near = limit(standing, linkEnds.value);
  const warned = warning(standing, linkEnds.value, now.value);
  // The clock of the page may be a second behind the last input.
  const left = near === null ? null : near.endsAt - Math.max(now.value, standing.inputAt);
  const giveBack = () => void control.giveBack(note.peek()).then(() => say("Control was returned."), complain);
  const tool = (name: DrawerName, label: string) => (
    <button type="button" aria-expanded={drawer === name} onClick={() => onDrawer(name)} data-testid={`${name}-open`}>
      {label}
    </button>
  );
  return (
    <>
      <Bar tone="mine" testid="held">
        <p class="strip-words">
          <strong>You are in control.</strong>{" "}
          {near !== null && left !== null && (
            <span>
              Ends in{" "}
              <b class="countdown" data-testid="countdown" role="timer" aria-live="off">
                {countdown(left)}
              </b>
              {" "}
              {LIMITS[near.limit]}
            </span>
          )}
        </p>
        <span class="strip-tools">
          {tool("keys", "Keys")}
          {tool("clipboard", "Clipboard")}
          {tool("secret", "Secret")}
        </span>
        <form
          class="strip-return"
          onSubmit={(event) => {
            event.preventDefault();
            giveBack();
          }}
        >
          <label class="grow">
            <span class="visually-hidden">Note to the agents</span>
            <input
              value={note.value}
              maxLength={1_000}
              onInput={(event) => write(name, event.currentTarget.value)}
              placeholder="Note to the agents"
              autocomplete="off"
              data-testid="note"
            />
          </label>
          <button type="submit" class="primary return" data-testid="return-control">
            Return control
          </button>
        </form>
      </Bar>
      {warned !== null && (
        <div class="banner warn" role="alert" data-testid="warning">
          <span>{WARNINGS[warned.limit]}</span>
          {warned.limit === "idle" && (
            <button type="button" class="primary" onClick={() => control.stay()} data-testid="im-here">
              I’m here
            </button>
          )}
        </div>
      )}
      {standing.asked !== null && !standing.asked.given && (
        <div class="banner ask" role="alert" data-testid="asked">
          <span>
            <strong>{cleanLine(standing.asked.from, 80)}</strong> asks for control
            {standing.asked.note === null || standing.asked.note === "" ? "." : `: ${cleanLine(standing.asked.note, 300)}`}
          </span>
          <Act label="Give it" class="primary" onAct={() => control.answer(true)} onFail={complain} testid="give" />
          <Act label="Keep it" onAct={() => control.answer(false)} onFail={complain} testid="refuse" />
        </div>
      )}
    </>
  );
}

