import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { hasEnded } from "../model/agents.ts";
import { move, rows, type Row } from "../model/rows.ts";
import { cleanLine, count } from "../model/text.ts";
import { find, listedSessions } from "../state/app.ts";
import { go, route, type Route } from "../state/route.ts";
import { Age, Icon, Status } from "./parts.tsx";
import { who } from "./who.ts";

/** What the person folded or unfolded. */
const chosen = signal<Readonly<Record<string, boolean>>>({});
/** The row that the keyboard is on. */
const current = signal<string | null>(null);

function fold(key: string, open: boolean): void {
  chosen.value = { ...chosen.peek(), [key]: open };
}

/** Where a row leads. */
function target(row: Row): Route | null {
  switch (row.kind) {
    case "session":
      return { at: "session", session: row.session };
    case "desktop":
      return { at: "desktop", session: row.session, desktop: row.desktop.id };
    case "agent":
      return { at: "agent", session: row.session, agent: row.agent.id };
    default:
      return null;
  }
}

function isHere(row: Row): boolean {
  const here = route.value;
  const there = target(row);
  if (there === null || here.at === "home") return false;
  if (there.at === "session") return (here.at === "session" || here.at === "record") && here.session === row.session;
  return JSON.stringify(here) === JSON.stringify(there);
}

/** All sessions with their desktops and agents. */
export function SessionTree(): JSX.Element {
  const element = useRef<HTMLUListElement>(null);
  const drawn = useRef(new Drawn());
  const rooted = listedSessions.value.map((session) => ({ id: session.id, list: session.list.value }));
  const list = rows(rooted, (key, usual) => chosen.value[key] ?? usual);
  const place = (key: string | null) => Math.max(0, list.findIndex((row) => row.key === key));
  const at = place(current.value);

  const press = (event: KeyboardEvent) => {
    // Keys may come faster than the tree is drawn.
    const at = place(current.peek());
    const row = list[at];
    if (row === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      activate(row);
      return;
    }
    const moved = move(list, at, event.key);
    if (moved === null) return;
    event.preventDefault();
    if ("fold" in moved) fold(row.key, !moved.fold);
    else focus(list[moved.to]);
  };
  const focus = (row: Row | undefined) => {
    if (row === undefined) return;
    current.value = row.key;
    for (const item of element.current?.children ?? []) {
      if (item instanceof HTMLElement && item.dataset.key === row.key) item.focus();
    }
  };
  return (
    <section class="tree-section" aria-labelledby="tree-title">
      <h2 id="tree-title">Sessions</h2>
      {list.length === 0 ? (
        <p class="muted small">
          No session is running. One begins with <code>handover up --desktop</code>.
        </p>
      ) : (
        <ul class="tree" role="tree" aria-labelledby="tree-title" ref={element} onKeyDown={press} data-testid="session-tree">
          {list.map((row, index) => drawn.current.of(row, isHere(row), index === at))}
        </ul>
      )}
    </section>
  );
}

function activate(row: Row): void {
  current.value = row.key;
  const there = target(row);
  if (there === null) fold(row.key, row.open !== true);
  else go(there);
}

/** Rows that were drawn; one of which nothing changed is not drawn again. There may be a thousand. */
class Drawn {
  #rows = new Map<string, { of: string; what: unknown; row: JSX.Element }>();

  of(row: Row, here: boolean, current: boolean): JSX.Element {
    const of = [row.level, row.place, row.siblings, row.open, here, current, row.kind === "ended" && row.count].join();
    const what = row.kind === "agent" ? row.agent : row.kind === "desktop" ? row.desktop : null;
    const known = this.#rows.get(row.key);
    if (known !== undefined && known.of === of && known.what === what) return known.row;
    if (this.#rows.size > MOST_DRAWN) this.#rows.clear();
    const drawn = <Item key={row.key} row={row} here={here} current={current} />;
    this.#rows.set(row.key, { of, what, row: drawn });
    return drawn;
  }
}

/** Rows that are kept, some of which are no longer in the tree. */
const MOST_DRAWN = 5_000;

function Item({ row, here, current: focused }: { row: Row; here: boolean; current: boolean }): JSX.Element {
  return (
    <li
      class={`level-${Math.min(row.level, 8)} ${here ? "here" : ""}`}
      role="treeitem"
      aria-level={row.level}
      aria-posinset={row.place}
      aria-setsize={row.siblings}
      aria-selected={here}
      {...(row.open === null ? {} : { "aria-expanded": row.open })}
      tabIndex={focused ? 0 : -1}
      data-key={row.key}
      data-testid={testid(row)}
      onClick={() => activate(row)}
      onFocus={() => (current.value = row.key)}
    >
      <span
        class={row.open === null ? "twist none" : row.open ? "twist open" : "twist"}
        aria-hidden="true"
        onClick={(event) => {
          if (row.open === null) return;
          event.stopPropagation();
          fold(row.key, !row.open);
        }}
      >
        <Icon name="chevron" />
      </span>
      <Content row={row} />
    </li>
  );
}

function testid(row: Row): string {
  switch (row.kind) {
    case "desktop":
      return `desktop-${row.desktop.id}`;
    case "agent":
      return `agent-${row.agent.id}`;
    case "ended":
      return `ended-${row.session}`;
    default:
      return `session-${row.session}`;
  }
}

function Content({ row }: { row: Row }): JSX.Element {
  switch (row.kind) {
    case "session": {
      const session = find(row.session);
      const gone = session?.problem.value != null;
      const why = session?.silent.value === true ? "does not answer" : "not reachable";
      return (
        <>
          <span class="name">{cleanLine(session?.manifest.value.name, 80) || row.session}</span>
          <span class="about">{gone ? why : summary(row)}</span>
        </>
      );
    }
    case "desktop": {
      const session = find(row.session);
      if (session === undefined) return <span class="name">{row.desktop.id}</span>;
      const { words, tone } = who(session, row.desktop);
      return (
        <>
          <Icon name="screen" />
          <span class="name">{row.desktop.id}</span>
          <span class={`about control-${tone}`}>{words}</span>
        </>
      );
    }
    case "agent": {
      const { agent } = row;
      return (
        <>
          <Status status={agent.status} />
          <span class={hasEnded(agent.status) ? "name muted" : "name"}>{cleanLine(agent.name, 80) || agent.id}</span>
          <span class="about task">{cleanLine(agent.task, 120)}</span>
          <Age since={agent.startedAt} />
        </>
      );
    }
    default:
      return <span class="about">{count(row.count, "agent")} ended</span>;
  }
}

function summary(row: Row): string {
  const list = find(row.session)?.list.value;
  if (list == null) return "";
  const busy = list.agents.filter((agent) => !hasEnded(agent.status)).length;
  return busy === 0 ? "" : count(busy, "agent");
}
