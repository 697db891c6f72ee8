import type { Held } from "./lease.ts";

/**
 * The leases of this tab over a reload. They are in the session storage, which no other tab shares; but a tab that is
 * duplicated starts with a copy of it. So a tab only takes up a lease whose lock it gets: one tab at a time has it. It
 * waits for the lock only if the page before it said that it leaves, which is not in the copy: otherwise a copy would
 * get the lock in the moment in which the page that has control is loaded again.
 */

const PREFIX = "handover-lease-";
/** A page that is being left still has its locks for a moment. After so long the lease is over anyway, in milliseconds. */
const LEAVING_MS = 10_000;

/** A lease from before this page was loaded; `left` if the page before it said that it leaves. */
export type Kept = Held & { left?: boolean };

/** Remembers a lease in this tab, with `left` for the page after this one. */
export function keep(held: Held, left = false): void {
  try {
    const kept: Kept = left ? { ...held, left } : held;
    sessionStorage.setItem(PREFIX + held.leaseId, JSON.stringify(kept));
  } catch {
    // Without storage a reload gives control back, which is safe.
  }
}

/** Forgets a lease. */
export function forget(leaseId: string): void {
  try {
    sessionStorage.removeItem(PREFIX + leaseId);
  } catch {
    // As above.
  }
}

/** The leases that this tab had before it was reloaded. */
export function kept(): Kept[] {
  const found: Kept[] = [];
  try {
    for (const key of Object.keys(sessionStorage)) {
      if (!key.startsWith(PREFIX)) continue;
      const held = read(sessionStorage.getItem(key));
      if (held === null) sessionStorage.removeItem(key);
      else found.push(held);
    }
  } catch {
    return [];
  }
  return found;
}

function read(text: string | null): Kept | null {
  try {
    const held = JSON.parse(text ?? "") as Partial<Kept>;
    const texts = [held.session, held.desktop, held.leaseId, held.token];
    const numbers = [held.heartbeatMs, held.since, held.terms?.idleMs];
    if (!texts.every((one) => typeof one === "string")) return null;
    if (!numbers.every((one) => typeof one === "number")) return null;
    return held as Kept;
  } catch {
    return null;
  }
}

/**
 * Makes this tab the one that has the lease, until the function that it answers is called or the page goes. Answers
 * null if another tab is; with `patient` not before that tab had time to leave.
 */
export function claim(leaseId: string, patient: boolean): Promise<(() => void) | null> {
  // Locks are there in secure contexts only; the address of a console is one.
  if (!("locks" in navigator)) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    const patience = new AbortController();
    const timer = patient ? setTimeout(() => patience.abort(), LEAVING_MS) : undefined;
    const held = (lock: Lock | null): Promise<void> => {
      clearTimeout(timer);
      if (lock !== null) return new Promise<void>((release) => resolve(release));
      resolve(null);
      return Promise.resolve();
    };
    const options: LockOptions = patient ? { signal: patience.signal } : { ifAvailable: true };
    navigator.locks.request(PREFIX + leaseId, options, held).catch(() => resolve(null));
  });
}
