import type { AgentStatus, Event, ListResult } from "../wire/types.ts";

/**
 * A new list with those agents and desktops of the old one that are the same: what did not change is not drawn
 * again.
 */
export function shared(old: ListResult | null, list: ListResult): ListResult {
  if (old === null) return list;
  return { ...list, agents: reuse(old.agents, list.agents), desktops: reuse(old.desktops, list.desktops) };
}

function reuse<T extends { id: string }>(old: readonly T[], now: readonly T[]): T[] {
  const known = new Map(old.map((one) => [one.id, one]));
  return now.map((one) => {
    const former = known.get(one.id);
    return former !== undefined && JSON.stringify(former) === JSON.stringify(one) ? former : one;
  });
}

/** The list with what events say of how agents stand, before the host is asked for a new one. */
export function withNews(list: ListResult, news: readonly Event[]): ListResult {
  const statuses = new Map<string, AgentStatus>();
  for (const { kind, agent, status } of news) {
    if (kind === "agent_status" && agent !== undefined) statuses.set(agent, status as AgentStatus);
  }
  if (statuses.size === 0) return list;
  const agents = list.agents.map((one) => {
    const status = statuses.get(one.id) ?? one.status;
    return status === one.status ? one : { ...one, status };
  });
  return { ...list, agents };
}
