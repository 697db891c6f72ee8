import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";

import { cleanLine } from "../model/text.ts";
import { clockTime } from "../model/time.ts";
import { ALL, GROUPS, matches, pictureOf, type Filter, type Group } from "../model/timeline.ts";
import { entries } from "../model/record.ts";
import { told, whose } from "../model/words.ts";
import { now } from "../state/clock.ts";
import { href } from "../state/route.ts";
import type { Session } from "../state/session.ts";
import type { Event, Source } from "../wire/types.ts";
import { Dialog } from "./parts.tsx";
import { useBacklog } from "./SessionPage.tsx";
import { Missing } from "./Transcript.tsx";

/** Rows that are shown at first, and that each further look back adds. */
const SHOWN = 200;

const SOURCES: readonly { value: Source; label: string }[] = [
  { value: "human", label: "People" },
  { value: "agent", label: "Agents" },
  { value: "app", label: "Programs" },
  { value: "host", label: "The host" },
];

/** The evidence of a session, newest first. */
export function RecordPage({ session }: { session: Session }): JSX.Element {
  const [filter, setFilter] = useState<Filter>(ALL);
  const [shown, setShown] = useState(SHOWN);
  useBacklog(session, 500);
  const drawn = useRef(new WeakMap<Event, JSX.Element>());
  const log = session.log.value;
  const found = useMemo(() => entries(log, (event) => matches(filter, event)).reverse(), [log, filter]);
  return (
    <div class="page stack" data-testid="record-page">
      <div class="page-head">
        <h1>Record</h1>
        <a class="muted" href={href({ at: "session", session: session.id })}>
          {cleanLine(session.manifest.value.name, 80) || session.id}
        </a>
        <span class="spring" />
        <a class="button" href={`/api/report/${encodeURIComponent(session.id)}`} target="_blank" rel="noopener" data-testid="report">
          Open the report
        </a>
      </div>
      {/* Each changes its own part alone: choices may come faster than they are drawn. */}
      <Filters session={session} filter={filter} onChange={(some) => setFilter((now) => ({ ...now, ...some }))} />
      <ol class="plain timeline" data-testid="timeline">
        {found.slice(0, shown).map((entry) => {
          if ("gap" in entry) {
            return (
              <li key={`g${entry.gap.from}`}>
                <Missing session={session} gap={entry.gap} />
              </li>
            );
          }
          return line(drawn.current, session, entry.event);
        })}
      </ol>
      {found.length === 0 && <p class="muted">Nothing of that kind is in what has been read so far.</p>}
      {(found.length > shown || session.hasEarlier) && (
        <button
          type="button"
          disabled={session.reading.value}
          onClick={() => {
            if (found.length > shown) setShown(shown + SHOWN);
            else void session.earlier();
          }}
          data-testid="earlier"
        >
          {session.reading.value ? "Reading…" : "Show what was before"}
        </button>
      )}
    </div>
  );
}

function Filters(props: { session: Session; filter: Filter; onChange: (some: Partial<Filter>) => void }): JSX.Element {
  const { session, filter, onChange } = props;
  const list = session.list.value;
  const agents = (list?.agents ?? []).map(({ id, name }) => ({ value: id, label: cleanLine(name, 40) || id }));
  const desktops = (list?.desktops ?? []).map(({ id }) => ({ value: id, label: id }));
  const groups = GROUPS.map(({ group, label }) => ({ value: group, label }));
  return (
    <div class="filters" role="group" aria-label="What is shown">
      <Choice label="Kind" value={filter.group} options={groups} testid="filter-kind" onChange={(group) => onChange({ group: group as Group | "" })} />
      <Choice label="Whose" value={filter.source} options={SOURCES} testid="filter-source" onChange={(source) => onChange({ source: source as Source | "" })} />
      <Choice label="Agent" value={filter.agent} options={agents} testid="filter-agent" onChange={(agent) => onChange({ agent })} />
      <Choice label="Desktop" value={filter.desktop} options={desktops} testid="filter-desktop" onChange={(desktop) => onChange({ desktop })} />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.pictures}
          onChange={(event) => onChange({ pictures: event.currentTarget.checked })}
          data-testid="filter-pictures"
        />
        with a picture
      </label>
    </div>
  );
}

function Choice(props: {
  label: string;
  value: string;
  options: readonly { value: string; label: string }[];
  testid: string;
  onChange: (value: string) => void;
}): JSX.Element {
  return (
    <label class="choice">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)} data-testid={props.testid}>
        <option value="">all</option>
        {props.options.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** An event's line, drawn once: an event never changes. */
function line(drawn: WeakMap<Event, JSX.Element>, session: Session, event: Event): JSX.Element {
  const known = drawn.get(event);
  if (known !== undefined) return known;
  const element = (
    <li key={event.seq}>
      <Line session={session} event={event} />
    </li>
  );
  drawn.set(event, element);
  return element;
}

function Line({ session, event }: { session: Session; event: Event }): JSX.Element {
  const picture = pictureOf(event);
  return (
    <article class="event">
      <time class="muted" dateTime={event.at}>
        {clockTime(event.at, now.peek())}
      </time>
      <span class={`who source-${event.source}`} title={who(event)}>
        {cleanLine(whose(event), 40)}
      </span>
      <span class="what">
        {told(event)}
        {picture !== null && <Picture session={session.id} name={picture} event={event} />}
      </span>
      <About session={session} event={event} />
      <span class="muted small seq">{event.seq}</span>
    </article>
  );
}

/** The agent or the desktop that it is about. */
function About({ session, event }: { session: Session; event: Event }): JSX.Element {
  const { agent, desktop } = event;
  if (desktop !== undefined) {
    return (
      <a class="muted small" href={href({ at: "desktop", session: session.id, desktop })}>
        {desktop}
      </a>
    );
  }
  if (agent === undefined) return <span />;
  const known = session.list.value?.agents.find((one) => one.id === agent);
  return (
    <a class="muted small" href={href({ at: "agent", session: session.id, agent })}>
      {cleanLine(known?.name ?? agent, 30)}
    </a>
  );
}

/** Who caused it, as the host found out. */
function who({ actor }: Event): string {
  const evidence = actor.evidence === undefined ? "" : `, known by ${actor.evidence}`;
  return cleanLine(`process ${actor.pid} of user ${actor.uid}, by ${actor.via || "the host"}${evidence}`, 200);
}

function Picture({ session, name, event }: { session: string; name: string; event: Event }): JSX.Element {
  const [large, setLarge] = useState(false);
  const [gone, setGone] = useState(false);
  const address = `/api/picture/${encodeURIComponent(session)}/${encodeURIComponent(name)}`;
  const words = `Desktop ${event.desktop ?? ""} at ${clockTime(event.at, now.peek())}`;
  if (gone) return <span class="muted small">its picture is not there any more</span>;
  return (
    <>
      <button type="button" class="thumb" onClick={() => setLarge(true)} aria-label={`${words}, larger`}>
        <img src={address} alt={words} loading="lazy" decoding="async" onError={() => setGone(true)} />
      </button>
      {large && (
        <Dialog title={words} onClose={() => setLarge(false)} wide>
          <img class="large" src={address} alt={words} />
          <div class="actions">
            <a class="button" href={address} target="_blank" rel="noopener">
              Open alone
            </a>
            <button type="button" onClick={() => setLarge(false)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
