import type { Event, Gap } from "../wire/types.ts";

/** Events that are kept of one session; older ones are read again when somebody wants them. */
export const MOST_EVENTS = 5_000;

/**
 * What this tab has of a session's record: events in order without doubles, and honestly what is missing between
 * them. `first` is the oldest place that has been read, so that everything from there on is here or in `gaps`.
 */
export interface Log {
  readonly events: readonly Event[];
  readonly gaps: readonly Gap[];
  readonly first: number;
  readonly last: number;
}

export const EMPTY: Log = { events: [], gaps: [], first: 0, last: 0 };

/** A log that knows nothing before `cursor`, the place after which events come. */
export function startAt(cursor: number): Log {
  return { events: [], gaps: [], first: cursor + 1, last: cursor };
}

/**
 * The log with events that came live, in order. What they skip is a gap, unless this browser is shown only `some` of
 * the record.
 */
export function append(log: Log, news: readonly Event[], some = false): Log {
  const added: Event[] = [];
  const gaps = [...log.gaps];
  let { last } = log;
  for (const event of news) {
    if (event.seq <= last) continue;
    if (event.seq > last + 1 && !some) gaps.push({ from: last + 1, to: event.seq - 1 });
    added.push(event);
    last = event.seq;
  }
  if (added.length === 0) return log;
  return bounded({ ...log, events: [...log.events, ...added], gaps, last });
}

/** The log with what a subscriber was too slow for. */
export function skip(log: Log, gap: Gap): Log {
  if (gap.to <= log.last) return log;
  const missing = { from: Math.max(gap.from, log.last + 1), to: gap.to };
  return { ...log, gaps: [...log.gaps, missing], last: gap.to };
}

/** The log with a page of the record from `since`, the place before its first event, to `next`. */
export function fill(log: Log, page: readonly Event[], since: number, next: number): Log {
  const known = new Set(log.events.map((event) => event.seq));
  const fresh = page.filter((event) => !known.has(event.seq) && event.seq <= log.last);
  const events = fresh.length === 0 ? log.events : [...log.events, ...fresh].sort((a, b) => a.seq - b.seq);
  const first = since + 1 < log.first && next + 1 >= log.first ? since + 1 : log.first;
  return { ...log, events, first, gaps: log.gaps.flatMap((gap) => without(gap, since + 1, next)) };
}

/** What is left of a gap when `from` to `to` has been read. */
function without(gap: Gap, from: number, to: number): Gap[] {
  if (to < gap.from || from > gap.to) return [gap];
  const left: Gap[] = [];
  if (gap.from < from) left.push({ from: gap.from, to: from - 1 });
  if (gap.to > to) left.push({ from: to + 1, to: gap.to });
  return left;
}

function bounded(log: Log): Log {
  const surplus = log.events.length - MOST_EVENTS;
  if (surplus <= 0) return log;
  const events = log.events.slice(surplus);
  const first = events[0]?.seq ?? log.last + 1;
  return { ...log, events, first, gaps: log.gaps.filter((gap) => gap.to >= first) };
}

/** An event or a gap, in the order of the record. */
export type Entry = { event: Event } | { gap: Gap };

/** Such events as are wanted, with the gaps between them. */
export function entries(log: Log, wanted: (event: Event) => boolean): Entry[] {
  const result: Entry[] = [];
  let gap = 0;
  for (const event of log.events) {
    for (let next = log.gaps[gap]; next !== undefined && next.from < event.seq; next = log.gaps[++gap]) {
      result.push({ gap: next });
    }
    if (wanted(event)) result.push({ event });
  }
  for (const next of log.gaps.slice(gap)) result.push({ gap: next });
  return result;
}
