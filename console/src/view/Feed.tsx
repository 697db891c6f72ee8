import type { JSX } from "preact";

import { cleanLine } from "../model/text.ts";
import { clockTime } from "../model/time.ts";
import { groupOf } from "../model/timeline.ts";
import { told, whose } from "../model/words.ts";
import { now } from "../state/clock.ts";
import type { Session } from "../state/session.ts";
import { useBacklog } from "./SessionPage.tsx";

const MOST = 100;

/** An agent by the name that it has everywhere else. */
function nameOf(session: Session, who: string): string {
  const agent = session.list.value?.agents.find((one) => one.id === who);
  return cleanLine(agent?.name ?? who, 30);
}

/** What was done on a desktop, newest first. */
export function Feed({ session, desktop }: { session: Session; desktop: string }): JSX.Element {
  useBacklog(session, 100);
  const wanted = session.log.value.events.filter((event) => event.desktop === desktop && groupOf(event.kind) !== "agent");
  const latest = wanted.slice(-MOST).reverse();
  if (latest.length === 0) return <p class="muted small">Nothing yet.</p>;
  return (
    <ol class="plain feed" data-testid="desktop-feed">
      {latest.map((event) => (
        <li key={event.seq} class={event.outcome === "refused" || event.outcome === "failed" ? "bad" : ""}>
          <span class="feed-line">
            <span class={`who source-${event.source}`}>{nameOf(session, whose(event))}</span>
            <time class="muted" dateTime={event.at}>
              {clockTime(event.at, now.peek())}
            </time>
          </span>
          <span class="what">{told(event)}</span>
        </li>
      ))}
    </ol>
  );
}
