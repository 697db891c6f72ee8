import type { AgentStatus, AgentView } from "../wire/types.ts";

const ENDED: readonly AgentStatus[] = ["done", "failed", "aborted", "cancelled-before-start", "interrupted"];

/** Whether nothing more will come of an agent that stands so. */
export function hasEnded(status: AgentStatus): boolean {
  return ENDED.includes(status);
}

/** An agent with those below it. */
export interface Branch {
  agent: AgentView;
  children: Branch[];
}

/** The agents as trees, in the order of the list. One whose parent is not in the list stands at the top. */
export function tree(agents: readonly AgentView[]): Branch[] {
  const branches = new Map<string, Branch>();
  for (const agent of agents) branches.set(agent.id, { agent, children: [] });
  const roots: Branch[] = [];
  for (const branch of branches.values()) {
    const parent = branch.agent.parent === null ? undefined : branches.get(branch.agent.parent);
    if (parent === undefined || isBelow(branches, parent, branch)) roots.push(branch);
    else parent.children.push(branch);
  }
  return roots;
}

/** Whether an agent and all below it have ended. */
export function allEnded({ agent, children }: Branch): boolean {
  return hasEnded(agent.status) && children.every(allEnded);
}

/** Whether `branch` is `above` or stands above it: a ring of parents must not make agents vanish. */
function isBelow(branches: ReadonlyMap<string, Branch>, branch: Branch, above: Branch): boolean {
  let at: Branch | undefined = branch;
  for (let steps = 0; at !== undefined && steps < branches.size; steps++) {
    if (at === above) return true;
    at = at.agent.parent === null ? undefined : branches.get(at.agent.parent);
  }
  return false;
}

/** Everything below an agent that has not ended: what an abort ends with it. */
export function descendants(agents: readonly AgentView[], id: string): AgentView[] {
  const found: AgentView[] = [];
  const ids = new Set([id]);
  // A child may stand before its parent in the list, so until nothing new is found.
  for (let before = -1; before !== ids.size; ) {
    before = ids.size;
    for (const agent of agents) {
      if (agent.parent === null || !ids.has(agent.parent) || ids.has(agent.id)) continue;
      ids.add(agent.id);
      if (!hasEnded(agent.status)) found.push(agent);
    }
  }
  return found;
}

const WORDS: Record<AgentStatus, string> = {
  queued: "queued",
  starting: "starting",
  running: "running",
  waiting: "waiting",
  done: "done",
  failed: "failed",
  aborted: "aborted",
  "cancelled-before-start": "cancelled",
  interrupted: "interrupted",
};

const MEANINGS: Record<AgentStatus, string> = {
  queued: "Waits for its turn to start.",
  starting: "Its program is being started.",
  running: "Works.",
  waiting: "Waits for a person's answer, or for its desktop.",
  done: "Ended by itself, with a result.",
  failed: "Ended by itself, with an error.",
  aborted: "Ended by somebody.",
  "cancelled-before-start": "Ended by somebody before it began.",
  interrupted: "Its host died.",
};

/** A status in a word. */
export function statusWord(status: AgentStatus): string {
  return WORDS[status] ?? status;
}

/** A status in a sentence. */
export function statusMeaning(status: AgentStatus): string {
  return MEANINGS[status] ?? "";
}

/** What may be said instead of steering, or null if it can be steered. */
export function whyNotSteerable(agent: AgentView): string | null {
  if (hasEnded(agent.status)) return `It has ended (${statusWord(agent.status)}), so nothing can be said to it any more.`;
  if (agent.status === "queued") return "It has not begun, so nothing can be said to it yet.";
  return agent.notSteerable ?? null;
}

/** A number of tokens, short: `950`, `12.3k`, `1.2M`. */
export function tokens(number: number): string {
  if (number < 1_000) return String(number);
  if (number < 1_000_000) return `${(number / 1_000).toFixed(number < 100_000 ? 1 : 0)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}
