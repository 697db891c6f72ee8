import type { JSX } from "preact";

import { hasEnded, statusWord } from "../model/agents.ts";
import { clean, cleanLine, count, shortPath } from "../model/text.ts";
import { home, link, listedSessions } from "../state/app.ts";
import { href } from "../state/route.ts";
import type { Session } from "../state/session.ts";
import type { AgentStatus, AgentView } from "../wire/types.ts";
import { NeedCards } from "./Needs.tsx";
import { Age } from "./parts.tsx";
import { who } from "./who.ts";

/** Everything at a glance. */
export function Home(): JSX.Element {
  const list = listedSessions.value;
  return (
    <div class="page stack" data-testid="home">
      <h1 class="visually-hidden">Handover</h1>
      <NeedCards />
      {list.length === 0 && link.value === "open" && <Nothing />}
      {list.length > 0 && (
        <section class="stack tight" aria-labelledby="sessions-title">
          <h2 id="sessions-title">{count(list.length, "session")}</h2>
          <div class="cards">
            {list.map((session) => (
              <SessionCard key={session.id} session={session} />
            ))}
          </div>
        </section>
      )}
    </div>
  );
}

function Nothing(): JSX.Element {
  return (
    <div class="card">
      <p>No session is running. In a project directory, begin one with a desktop, and an agent in it:</p>
      <pre>{'handover up --desktop\nhandover agent run --desktop d1 -- "What it is to do"'}</pre>
      <p class="muted">It appears here by itself.</p>
    </div>
  );
}

function SessionCard({ session }: { session: Session }): JSX.Element {
  const { name, projectDir } = session.manifest.value;
  const list = session.list.value;
  const problem = session.problem.value;
  return (
    <article class="card session">
      <h3>
        <a href={href({ at: "session", session: session.id })}>{cleanLine(name, 80) || session.id}</a>
      </h3>
      <p class="muted small path" title={cleanLine(projectDir)}>
        {cleanLine(shortPath(projectDir, home.value))}
      </p>
      {problem !== null && <p class="bad small">{clean(problem, 500)}</p>}
      <ul class="plain chips">
        {list?.desktops.map((desktop) => {
          const { words, tone } = who(session, desktop);
          return (
            <li key={desktop.id}>
              <a class={`chip link control-${tone}`} href={href({ at: "desktop", session: session.id, desktop: desktop.id })}>
                {desktop.id}: {words}
              </a>
            </li>
          );
        })}
      </ul>
      <p class="small muted">{list === null ? "" : agentsInWords(list.agents)}</p>
      <Busy session={session} />
    </article>
  );
}

/** The agents of a card that still do something. */
const SHOWN = 6;

function Busy({ session }: { session: Session }): JSX.Element | null {
  const busy = (session.list.value?.agents ?? []).filter((agent) => !hasEnded(agent.status));
  if (busy.length === 0) return null;
  return (
    <ul class="plain busy">
      {busy.slice(0, SHOWN).map((agent) => (
        <li key={agent.id}>
          <a href={href({ at: "agent", session: session.id, agent: agent.id })}>
            <i class={`dot status-${agent.status}`} role="img" aria-label={statusWord(agent.status)} />
            <span class="name">{cleanLine(agent.name, 60) || agent.id}</span>
            <span class="task">{cleanLine(agent.task, 160)}</span>
            <Age since={agent.startedAt} />
          </a>
        </li>
      ))}
      {busy.length > SHOWN && <li class="muted small">and {busy.length - SHOWN} more</li>}
    </ul>
  );
}

function agentsInWords(agents: readonly AgentView[]): string {
  if (agents.length === 0) return "No agents";
  const numbers = new Map<AgentStatus, number>();
  for (const { status } of agents) numbers.set(status, (numbers.get(status) ?? 0) + 1);
  // Those that still do something first.
  const sorted = [...numbers].sort(([a], [b]) => Number(hasEnded(a)) - Number(hasEnded(b)));
  return sorted.map(([status, number]) => `${number} ${statusWord(status)}`).join(", ");
}
