import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { allEnded, tokens, tree, type Branch } from "../model/agents.ts";
import { cleanLine, count, shortPath } from "../model/text.ts";
import { clockTime } from "../model/time.ts";
import { told, whose } from "../model/words.ts";
import { home, sessions } from "../state/app.ts";
import { now } from "../state/clock.ts";
import { go, href } from "../state/route.ts";
import type { Session } from "../state/session.ts";
import type { AgentView } from "../wire/types.ts";
import { Age, Confirm, Problem, Status } from "./parts.tsx";
import { RequestCard } from "./Needs.tsx";
import { who } from "./who.ts";

/** Kinds that say little on their own: they are on the page of their agent or desktop. */
const SMALL = new Set(["desktop_move", "steer"]);

/** The latest events on the page of a session. */
const LATEST = 40;

/** One session: its desktops, its agents, what happened last. */
export function SessionPage({ session }: { session: Session }): JSX.Element {
  const { name, projectDir } = session.manifest.value;
  const list = session.list.value;
  const problem = session.problem.value;
  const requests = list?.requests?.filter((request) => request.state === "open") ?? [];
  return (
    <div class="page stack" data-testid="session-page">
      <Head session={session} title={cleanLine(name, 80) || session.id} />
      <p class="muted path" title={cleanLine(projectDir)}>
        {cleanLine(shortPath(projectDir, home.value))}
      </p>
      {problem !== null && <Problem text={problem} />}
      {requests.map((request) => (
        <RequestCard key={request.requestId} session={session.id} request={request} />
      ))}
      <section class="stack tight" aria-labelledby="desktops-title">
        <h2 id="desktops-title">Desktops</h2>
        {list !== null && list.desktops.length === 0 && <p class="muted">None.</p>}
        <div class="cards small-cards">
          {list?.desktops.map((desktop) => {
            const { words, tone, mine } = who(session, desktop);
            return (
              <a key={desktop.id} class="card tile" href={href({ at: "desktop", session: session.id, desktop: desktop.id })}>
                <strong>{desktop.id}</strong> <span class="muted">{desktop.size.replace("x", " × ")}</span>
                <span class={`chip control-${tone}`}>{words}</span>
                {desktop.lease !== undefined && !mine && <span class="small muted">{cleanLine(desktop.lease.holder, 80)}</span>}
              </a>
            );
          })}
        </div>
      </section>
      <section class="stack tight" aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        {list === null || list.agents.length === 0 ? (
          <p class="muted">None.</p>
        ) : (
          <ul class="plain agents">
            {busyFirst(list.agents).map((branch) => (
              <AgentRow key={branch.agent.id} session={session.id} branch={branch} />
            ))}
          </ul>
        )}
      </section>
      <Latest session={session} />
    </div>
  );
}

function Head({ session, title }: { session: Session; title: string }): JSX.Element {
  const [ending, setEnding] = useState(false);
  const list = session.list.value;
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <span class="spring" />
      <a class="button" href={href({ at: "record", session: session.id })} data-testid="open-record">
        Record
      </a>
      <a class="button" href={`/api/report/${encodeURIComponent(session.id)}`} target="_blank" rel="noopener" data-testid="report">
        Report
      </a>
      <button type="button" onClick={() => setEnding(true)} disabled={session.problem.value !== null} data-testid="end-session">
        End session…
      </button>
      {ending && (
        <Confirm
          title={`End the session ${title}?`}
          action="End session"
          danger
          testid="end-session"
          onClose={() => setEnding(false)}
          onConfirm={async () => {
            await session.act("stop", { force: true });
            go({ at: "home" });
          }}
        >
          <p>
            This ends {count(list?.agents.length ?? 0, "agent")} and {count(list?.desktops.length ?? 0, "desktop")} with all
            programs on them, also where a person is in control. The record stays, and can be read with{" "}
            <code>handover report</code>.
          </p>
        </Confirm>
      )}
    </div>
  );
}

/** The agents as trees, first those in which something still goes on. */
function busyFirst(agents: readonly AgentView[]): Branch[] {
  const rank = (branch: Branch) => Number(allEnded(branch));
  return tree(agents).sort((a, b) => rank(a) - rank(b));
}

function AgentRow({ session, branch }: { session: string; branch: Branch }): JSX.Element {
  const { agent, children } = branch;
  return (
    <li>
      <a class="agent-row" href={href({ at: "agent", session, agent: agent.id })}>
        <Status status={agent.status} />
        <span class="name">{cleanLine(agent.name, 80) || agent.id}</span>
        <span class="muted small">{cleanLine(agent.type, 30)}</span>
        <span class="task muted">{cleanLine(agent.task, 300)}</span>
        {agent.tokens !== undefined && (
          <span class="small muted tokens" title="Tokens read and written by its model">
            {tokens(agent.tokens.input)} in, {tokens(agent.tokens.output)} out
          </span>
        )}
        <Age since={agent.startedAt} />
      </a>
      {children.length > 0 && (
        <ul class="plain agents">
          {children.map((child) => (
            <AgentRow key={child.agent.id} session={session} branch={child} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Latest({ session }: { session: Session }): JSX.Element {
  useBacklog(session, LATEST);
  const latest = session.log.value.events.filter(({ kind }) => !SMALL.has(kind)).slice(-LATEST).reverse();
  return (
    <section class="stack tight" aria-labelledby="latest-title">
      <h2 id="latest-title">What happened last</h2>
      <ul class="plain log">
        {latest.map((event) => (
          <li key={event.seq}>
            <time class="muted" dateTime={event.at}>
              {clockTime(event.at, now.value)}
            </time>
            <span class={`who source-${event.source}`}>{cleanLine(whose(event), 40)}</span>
            <span class="what">{told(event)}</span>
            {event.desktop !== undefined && <span class="muted">{event.desktop}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Reads a page of what happened before, where little is known. */
export function useBacklog(session: Session, enough: number): void {
  const { events, first } = session.log.value;
  const little = events.length < enough && first > 1;
  useEffect(() => {
    if (little) void session.earlier();
  }, [session, little]);
}

/** The session of that id, or undefined if it is not there. */
export function sessionOf(id: string): Session | undefined {
  return sessions.value.find((session) => session.id === id);
}
