import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { descendants, hasEnded, tokens, whyNotSteerable } from "../model/agents.ts";
import { clean, cleanLine, count } from "../model/text.ts";
import { href } from "../state/route.ts";
import type { Session } from "../state/session.ts";
import { say } from "../state/toasts.ts";
import { Refusal } from "../wire/refusal.ts";
import type { AbortResult, AgentResult, AgentView } from "../wire/types.ts";
import { RequestCard } from "./Needs.tsx";
import { Age, Breakable, Confirm, Icon, Problem, Status } from "./parts.tsx";
import { Steer } from "./Steer.tsx";
import { Transcript } from "./Transcript.tsx";

/** One agent: what it does, and what can be said to it. */
export function AgentPage({ session, id }: { session: Session; id: string }): JSX.Element {
  const list = session.list.value;
  const agent = list?.agents.find((one) => one.id === id);
  if (agent === undefined) {
    return (
      <div class="page">
        <p class="muted">{list === null ? "Waiting for the session…" : `There is no agent ${cleanLine(id, 40)} in this session.`}</p>
      </div>
    );
  }
  const requests = list?.requests?.filter((request) => request.agent === id && request.state === "open") ?? [];
  const why = session.problem.value ?? whyNotSteerable(agent);
  return (
    <div class="page agent-page" data-testid="agent-page">
      <AgentHead session={session} agent={agent} />
      {session.problem.value !== null && <Problem text={session.problem.value} />}
      <details class="task-words" open={agent.task.length < 200}>
        <summary>Task</summary>
        <p class="words">
          <Breakable text={clean(agent.task, 8_000) || "(empty)"} />
        </p>
      </details>
      {requests.map((request) => (
        <RequestCard key={request.requestId} session={session.id} request={request} at="agent" />
      ))}
      <Transcript session={session} agent={id} />
      {hasEnded(agent.status) && <Result session={session} agent={agent} />}
      {why === null ? (
        <Steer session={session} agent={agent} />
      ) : (
        <p class="muted steer-why" data-testid="not-steerable">
          {clean(why, 400)}
        </p>
      )}
    </div>
  );
}

function AgentHead({ session, agent }: { session: Session; agent: AgentView }): JSX.Element {
  const [aborting, setAborting] = useState(false);
  const parent = session.list.value?.agents.find((one) => one.id === agent.parent);
  return (
    <div class="page-head">
      <h1>{cleanLine(agent.name, 80) || agent.id}</h1>
      <Status status={agent.status} />
      <span class="muted small" data-testid="agent-facts">
        {cleanLine(agent.type, 30)} <code>{agent.id}</code>
        {parent !== undefined && (
          <>
            {" "}
            for <a href={href({ at: "agent", session: session.id, agent: parent.id })}>{cleanLine(parent.name, 60)}</a>
          </>
        )}
        {agent.startedAt !== null && (
          <>
            , began <Age since={agent.startedAt} /> ago
          </>
        )}
        {agent.tokens !== undefined && `, ${tokens(agent.tokens.input)} tokens in, ${tokens(agent.tokens.output)} out`}
        {agent.pending > 0 && `, ${count(agent.pending, "steer")} not read yet`}
      </span>
      <span class="spring" />
      {!hasEnded(agent.status) && (
        <button type="button" class="danger outline" onClick={() => setAborting(true)} data-testid="abort">
          <Icon name="stop" />
          Abort…
        </button>
      )}
      {aborting && <Abort session={session} agent={agent} onClose={() => setAborting(false)} />}
    </div>
  );
}

function Abort(props: { session: Session; agent: AgentView; onClose: () => void }): JSX.Element {
  const { session, agent, onClose } = props;
  const below = descendants(session.list.value?.agents ?? [], agent.id);
  const name = cleanLine(agent.name, 80) || agent.id;
  const abort = async () => {
    const { status, descendants: ended, survivors } = await session.act<AbortResult>("abort", { id: agent.id });
    session.refresh();
    const rest = ended.length === 0 ? "" : ` With it ended ${count(ended.length, "agent")}.`;
    const left = survivors.length === 0 ? "" : ` These processes could not be ended: ${survivors.join(", ")}.`;
    say(`${name} is ${status}.${rest}${left}`);
  };
  return (
    <Confirm title={`Abort ${name}?`} action="Abort" danger testid="abort" onClose={onClose} onConfirm={abort}>
      <p>
        It is interrupted, and its program and all that it started is ended. What was said to it and has not arrived is
        dropped. Its record stays.
      </p>
      {below.length > 0 && (
        <>
          <p>{below.length === 1 ? "One agent below it ends too:" : `${below.length} agents below it end too:`}</p>
          <ul class="ends" data-testid="abort-descendants">
            {below.slice(0, 50).map((one) => (
              <li key={one.id}>
                <Status status={one.status} /> {cleanLine(one.name, 80)} <span class="muted">{cleanLine(one.task, 80)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Confirm>
  );
}

function Result({ session, agent }: { session: Session; agent: AgentView }): JSX.Element | null {
  const [result, setResult] = useState<AgentResult | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let left = false;
    session.call<AgentResult>("result", { id: agent.id }).then(
      (answer) => !left && setResult(answer),
      (thrown) => !left && setProblem(Refusal.of(thrown).message),
    );
    return () => {
      left = true;
    };
  }, [session, agent.id, agent.status]);
  if (problem !== null) return <Problem text={problem} />;
  if (result === null) return null;
  return (
    <section class="card result" aria-labelledby="result-title" data-testid="result">
      <h2 id="result-title">Result</h2>
      {result.error !== undefined && (
        <p class="bad words">
          <Breakable text={clean(result.error, 4_000)} />
        </p>
      )}
      <p class="words">
        {result.text === "" ? <span class="muted">(nothing was said)</span> : <Breakable text={clean(result.text, 40_000)} />}
      </p>
    </section>
  );
}
