import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Need } from "../model/needs.ts";
import { clean, cleanLine, count } from "../model/text.ts";
import { find, needs, scope } from "../state/app.ts";
import { goTo } from "../state/alerts.ts";
import { draft, drop, write } from "../state/drafts.ts";
import { href } from "../state/route.ts";
import { say } from "../state/toasts.ts";
import { Refusal } from "../wire/refusal.ts";
import type { AgentView, RequestView } from "../wire/types.ts";
import { Age, Problem } from "./parts.tsx";

/** Who or what needs a person, in a few words. */
function title(need: Need): string {
  if (need.kind === "asked") return `${cleanLine(need.from, 80)} asks for control of ${need.desktop ?? ""}`;
  if (need.request !== undefined) return whoAsks(need.request, need.agent);
  return `${cleanLine(need.agent?.name, 60)} is waiting`;
}

function whoAsks(request: RequestView, agent: AgentView | undefined): string {
  const who = cleanLine(agent?.name ?? request.agent ?? "Somebody", 60);
  return request.question === undefined ? `${who} needs a person` : `${who} has a question`;
}

function detail(need: Need): string {
  if (need.kind === "asked") return cleanLine(need.note, 300);
  if (need.kind === "waiting") return "for a person's answer, or for its desktop";
  return cleanLine(need.request?.question ?? need.request?.reason, 300);
}

/** What needs a person, first of all, in the side bar. */
export function NeedsList(): JSX.Element {
  const list = needs.value;
  return (
    <section class="needs" aria-labelledby="needs-title" data-testid="needs-you">
      <h2 id="needs-title">
        Needs you {list.length > 0 && <span class="count">{list.length}</span>}
      </h2>
      <p class="visually-hidden" role="status">
        {list.length === 0 ? "Nothing needs you" : `${count(list.length, "thing needs", "things need")} you`}
      </p>
      {list.length === 0 ? (
        <p class="muted small">Nothing right now.</p>
      ) : (
        <ul class="plain">
          {list.slice(0, MOST).map((need) => (
            <li key={need.key}>
              <button type="button" class="need" onClick={() => goTo(need)} data-testid={`need-${need.key}`}>
                <span class="need-title">{title(need)}</span>
                {need.kind !== "waiting" && <Age since={new Date(need.since).toISOString()} />}
                <span class="need-detail">{detail(need)}</span>
                <span class="need-where">{cleanLine(find(need.session)?.manifest.value.name, 60) || need.session}</span>
              </button>
            </li>
          ))}
          {list.length > MOST && <li class="muted small">and {list.length - MOST} more</li>}
        </ul>
      )}
    </section>
  );
}

const MOST = 50;

/** A request for a person, with what can be done about it. `at` says where it is shown, so that it leads elsewhere. */
export function RequestCard(props: { session: string; request: RequestView; where?: string; at?: "desktop" | "agent" }): JSX.Element {
  const { session, request, where, at } = props;
  const { desktop, requestId } = request;
  const agent = find(session)?.list.value?.agents.find((one) => one.id === request.agent);
  return (
    <article class="card request" data-testid={`request-${requestId}`}>
      <div class="row wrap">
        <strong>{whoAsks(request, agent)}</strong>
        <span class="small muted">
          {where !== undefined && `${where}, `}
          <Age since={request.since} />
        </span>
        <span class="spring" />
        {agent !== undefined && at !== "agent" && (
          <a class="small" href={href({ at: "agent", session, agent: agent.id })}>
            Transcript
          </a>
        )}
        {desktop !== undefined && at !== "desktop" && (
          <a class="button" href={href({ at: "desktop", session, desktop })} data-testid={`request-${requestId}-desktop`}>
            Open {desktop}
          </a>
        )}
      </div>
      <p class="words">{clean(request.reason, 2_000)}</p>
      {request.question !== undefined && <p class="words question">{clean(request.question, 2_000)}</p>}
      {request.question !== undefined && scope.value?.kind === "all" && <Answer session={session} requestId={requestId} />}
      {request.state !== "open" && <p class="muted small">A person is dealing with it.</p>}
    </article>
  );
}

function Answer({ session, requestId }: { session: string; requestId: string }): JSX.Element {
  // A signal, since what was typed last must not wait for the next frame.
  const name = `answer/${session}/${requestId}`;
  const text = draft(name);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const said = text.peek();
    if (said.trim() === "") return;
    setBusy(true);
    setProblem(null);
    try {
      await find(session)?.act("answer", { requestId, text: said });
      drop(name);
      say("The answer was given.");
      find(session)?.refresh();
    } catch (thrown) {
      setProblem(Refusal.of(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form class="answer" onSubmit={(event) => void send(event)}>
      <label class="grow">
        <span class="visually-hidden">Your answer</span>
        <input
          value={text.value}
          onInput={(event) => write(name, event.currentTarget.value)}
          placeholder="Your answer"
          autocomplete="off"
          aria-describedby={`answer-hint-${requestId}`}
          data-testid={`answer-${requestId}`}
        />
      </label>
      <button type="submit" class="primary" disabled={busy} data-testid={`answer-send-${requestId}`}>
        Answer
      </button>
      <p class="muted small full" id={`answer-hint-${requestId}`}>
        The answer is recorded. Never put a password here: take control and use the secret field.
      </p>
      {problem !== null && <Problem text={problem} />}
    </form>
  );
}

/** What needs a person, with the means to deal with it at once. */
export function NeedCards(): JSX.Element | null {
  const list = needs.value;
  if (list.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="need-cards-title">
      <h2 id="need-cards-title">Needs you</h2>
      <div class="cards">
        {list.slice(0, MOST).map((need) =>
          need.request !== undefined ? (
            <RequestCard
              key={need.key}
              session={need.session}
              request={need.request}
              where={cleanLine(find(need.session)?.manifest.value.name, 60)}
            />
          ) : (
            <article key={need.key} class="card">
              <button type="button" class="text-link" onClick={() => goTo(need)}>
                {title(need)}
              </button>
              <p class="muted small">{detail(need)}</p>
            </article>
          ),
        )}
      </div>
    </section>
  );
}
