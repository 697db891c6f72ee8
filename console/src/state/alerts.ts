import { effect, signal } from "@preact/signals";

import { needLine, type Need } from "../model/needs.ts";
import { needs } from "./app.ts";
import { go, href, route, type Route } from "./route.ts";

/** Whether the browser shows notifications of this page; `none` where it has none to offer. */
export const permission = signal<NotificationPermission | "none">(
  "Notification" in window && isSecureContext ? Notification.permission : "none",
);

/** Asks the person; only ever called from a click. */
export async function askToNotify(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

/** Goes where a need is dealt with. */
export function goTo(need: Need): void {
  go(placeOf(need));
}

function placeOf({ session, desktop, agent, request }: Need): Route {
  if (desktop !== undefined && request?.question === undefined) return { at: "desktop", session, desktop };
  if (agent !== undefined) return { at: "agent", session, agent: agent.id };
  return { at: "session", session };
}

/** Keeps the title's count, and notifies of what is new unless it is just being looked at. */
export function watchNeeds(): void {
  let known = new Set<string>();
  effect(() => {
    const list = needs.value;
    document.title = list.length === 0 ? "Handover" : `(${list.length}) Handover`;
    const fresh = list.filter((need) => !known.has(need.key));
    known = new Set(list.map((need) => need.key));
    if (permission.value !== "granted") return;
    for (const need of fresh) if (!isSeen(need)) notify(need);
  });
}

/** Whether the person just looks at the place where a need is dealt with. */
function isSeen(need: Need): boolean {
  if (document.visibilityState !== "visible" || !document.hasFocus()) return false;
  return href(route.peek()) === href(placeOf(need));
}

function notify(need: Need): void {
  const notification = new Notification("Handover: a person is needed", { body: needLine(need), tag: need.key });
  notification.onclick = () => {
    window.focus();
    goTo(need);
    notification.close();
  };
}
