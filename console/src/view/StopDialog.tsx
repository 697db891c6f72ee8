import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { hasEnded } from "../model/agents.ts";
import { cleanLine, count } from "../model/text.ts";
import { controls, scope, sessions } from "../state/app.ts";
import { say } from "../state/toasts.ts";
import { Refusal } from "../wire/refusal.ts";
import type { StopAllResult } from "../wire/types.ts";
import type { Session } from "../state/session.ts";
import { Act, Dialog, Problem } from "./parts.tsx";
import { who } from "./who.ts";

/** Stops everything, or pauses one desktop. */
export function StopDialog({ onClose }: { onClose: () => void }): JSX.Element {
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [busy, setBusy] = useState(false);
  const live = sessions.value.filter((session) => session.problem.value === null);
  const desktops = live.flatMap((session) => (session.list.value?.desktops ?? []).map((desktop) => ({ session, desktop })));
  const agents = live.flatMap((session) => session.list.value?.agents ?? []).filter((agent) => !hasEnded(agent.status));
  const whole = scope.value?.kind === "all";

  const stopAll = async () => {
    setBusy(true);
    const outcomes = await Promise.all(sessions.peek().map(stop));
    const failed = outcomes.filter((outcome) => typeof outcome === "string");
    setBusy(false);
    setProblems(failed);
    if (failed.length > 0) return;
    const ended = outcomes.filter((outcome) => typeof outcome === "number").reduce((sum, number) => sum + number, 0);
    say(`Stopped: all desktops are paused, ${count(ended, "agent")} ended.`);
    onClose();
  };
  return (
    <Dialog title={whole ? "Stop or pause" : "Pause"} onClose={onClose} testid="stop-dialog">
      {whole && (
        <section class="stack tight">
          <p>
            <strong>Stop everything</strong> pauses {count(desktops.length, "desktop")} and aborts{" "}
            {count(agents.length, "agent")} in {count(live.length, "session")}. People who are in control lose it. Nothing
            goes on by itself; desktops can be resumed one by one, aborted agents cannot.
          </p>
          {problems.map((problem) => (
            <Problem key={problem} text={problem} />
          ))}
          <button type="button" class="danger" disabled={busy} onClick={() => void stopAll()} data-testid="emergency-confirm">
            {busy ? "Stopping…" : "Stop everything now"}
          </button>
        </section>
      )}
      {desktops.length > 0 && (
        <section class="stack tight">
          <h3>One desktop</h3>
          <p class="muted small">
            A pause lets nobody act there, and ends a person's control of it. The agents stay, and wait. After resuming they
            go on.
          </p>
          <ul class="plain pauses">
            {desktops.map(({ session, desktop }) => (
              <Pausable key={`${session.id}/${desktop.id}`} session={session} desktop={desktop.id} />
            ))}
          </ul>
        </section>
      )}
      <div class="actions">
        <button type="button" onClick={onClose} data-testid="stop-cancel">
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** Stops one session: how many agents ended, or what went wrong. */
async function stop(session: Session): Promise<number | string> {
  try {
    const { agents } = await session.act<StopAllResult>("stop_all_input");
    session.refresh();
    return agents.length;
  } catch (thrown) {
    // Where there is no host any more, nothing is left to stop.
    if (Refusal.of(thrown).code === "session_unknown") return 0;
    return `${cleanLine(session.manifest.peek().name, 60)}: ${Refusal.of(thrown).message}`;
  }
}

function Pausable({ session, desktop }: { session: Session; desktop: string }): JSX.Element | null {
  const [problem, setProblem] = useState<string | null>(null);
  const view = session.list.value?.desktops.find((one) => one.id === desktop);
  if (view === undefined) return null;
  const paused = view.control === "paused";
  const { words, tone } = who(session, view);
  const act = async () => {
    setProblem(null);
    await controls.of(session.id, desktop)?.pause(!paused);
  };
  return (
    <li>
      <span class="name">
        {cleanLine(session.manifest.value.name, 60)} / {desktop}
      </span>
      <span class={`chip control-${tone}`}>{words}</span>
      <span class="spring" />
      <Act
        label={paused ? "Resume" : "Pause"}
        onAct={act}
        onFail={(refusal) => setProblem(refusal.message)}
        testid={`stop-pause-${session.id}-${desktop}`}
      />
      {problem !== null && <Problem text={problem} />}
    </li>
  );
}
