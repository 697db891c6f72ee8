import { signal, type Signal } from "@preact/signals";

/**
 * What somebody is writing: it outlives the screen that it is written on, which goes with the connection, and a
 * reload of this tab. Never a secret.
 */

const PREFIX = "handover-draft-";
/** Drafts that are kept, and the longest one, in characters. */
const MOST = 50;
const LONGEST = 50_000;

const drafts = new Map<string, Signal<string>>();

/** The draft called `name`, to be shown; it changes by `write` alone. */
export function draft(name: string): Signal<string> {
  const known = drafts.get(name);
  if (known !== undefined) return known;
  const fresh = signal(stored(name));
  drafts.set(name, fresh);
  for (const [other, { value }] of drafts) {
    if (drafts.size <= MOST) break;
    // Empty ones first; that somebody writes on as many screens at a time does not happen.
    if (value === "" && other !== name) drafts.delete(other);
  }
  return fresh;
}

/** Keeps what has been written so far. */
export function write(name: string, text: string): void {
  draft(name).value = text;
  try {
    if (text === "" || text.length > LONGEST || full(name)) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, text);
  } catch {
    // Without storage it does not outlive a reload.
  }
}

/** It has been sent, or is of no use any more. */
export function drop(name: string): void {
  write(name, "");
}

function stored(name: string): string {
  try {
    return sessionStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

/** Whether there are so many others that this one is not kept over a reload. */
function full(name: string): boolean {
  const others = Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX) && key !== PREFIX + name);
  return others.length >= MOST;
}
