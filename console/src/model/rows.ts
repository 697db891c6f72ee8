import { allEnded, tree, type Branch } from "./agents.ts";
import type { AgentView, DesktopView, ListResult } from "../wire/types.ts";

/** What the tree needs to know of a session. */
export interface Rooted {
  id: string;
  list: ListResult | null;
}

/** One visible row of the tree. */
export type Row = {
  key: string;
  /** From 1. */
  level: number;
  /** Its place among its siblings, from 1, and how many there are. */
  place: number;
  siblings: number;
  /** Whether what is below it is shown; null if there is nothing. */
  open: boolean | null;
  session: string;
} & (
  | { kind: "session" }
  | { kind: "desktop"; desktop: DesktopView }
  | { kind: "agent"; agent: AgentView }
  | { kind: "ended"; count: number }
);

type Content =
  | { kind: "desktop"; desktop: DesktopView }
  | { kind: "agent"; branch: Branch }
  | { kind: "ended"; branches: Branch[] };

/** Agents that have ended are folded away if there are more than these. */
const FEW = 3;

/**
 * The rows of the tree from top to bottom. `isOpen` says whether a row is unfolded, given what it is if nobody chose.
 */
export function rows(sessions: readonly Rooted[], isOpen: (key: string, usual: boolean) => boolean): Row[] {
  const found: Row[] = [];
  sessions.forEach((session, index) => {
    const key = session.id;
    const contents = below(session.list);
    const open = contents.length === 0 ? null : isOpen(key, sessions.length <= 8);
    found.push({
      kind: "session", key, level: 1, place: index + 1, siblings: sessions.length, open, session: session.id,
    });
    if (open === true) add(found, session.id, contents, 2, isOpen);
  });
  return found;
}

function below(list: ListResult | null): Content[] {
  if (list === null) return [];
  const contents: Content[] = list.desktops.map((desktop) => ({ kind: "desktop", desktop }));
  const roots = tree(list.agents);
  const ended = roots.filter(allEnded);
  const folded = ended.length > FEW;
  for (const branch of roots) {
    if (!folded || !allEnded(branch)) contents.push({ kind: "agent", branch });
  }
  if (folded) contents.push({ kind: "ended", branches: ended });
  return contents;
}

function add(
  found: Row[],
  session: string,
  contents: readonly Content[],
  level: number,
  isOpen: (key: string, usual: boolean) => boolean,
): void {
  contents.forEach((content, index) => {
    const common = { level, place: index + 1, siblings: contents.length, session };
    switch (content.kind) {
      case "desktop": {
        const { desktop } = content;
        found.push({ ...common, kind: "desktop", key: `${session}/desktop/${desktop.id}`, open: null, desktop });
        return;
      }
      case "agent": {
        const { agent, children } = content.branch;
        const key = `${session}/agent/${agent.id}`;
        const open = children.length === 0 ? null : isOpen(key, true);
        found.push({ ...common, kind: "agent", key, open, agent });
        if (open === true) add(found, session, branches(children), level + 1, isOpen);
        return;
      }
      case "ended": {
        const key = `${session}/ended`;
        const open = isOpen(key, false);
        found.push({ ...common, kind: "ended", key, open, count: content.branches.length });
        if (open) add(found, session, branches(content.branches), level + 1, isOpen);
      }
    }
  });
}

function branches(children: readonly Branch[]): Content[] {
  return children.map((branch) => ({ kind: "agent", branch }));
}

/** Where the focus goes from row `at` with a key, and whether the row there is folded or unfolded instead. */
export function move(list: readonly Row[], at: number, key: string): { to: number } | { fold: boolean } | null {
  const row = list[at];
  if (row === undefined) return null;
  switch (key) {
    case "ArrowDown":
      return { to: Math.min(at + 1, list.length - 1) };
    case "ArrowUp":
      return { to: Math.max(at - 1, 0) };
    case "Home":
      return { to: 0 };
    case "End":
      return { to: list.length - 1 };
    case "ArrowRight":
      if (row.open === false) return { fold: false };
      return row.open === true ? { to: at + 1 } : null;
    case "ArrowLeft": {
      if (row.open === true) return { fold: true };
      for (let above = at - 1; above >= 0; above--) {
        if ((list[above]?.level ?? 0) < row.level) return { to: above };
      }
      return null;
    }
    default:
      return null;
  }
}
