import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { DesktopControl } from "../control/desktop.ts";
import { dimensions } from "../model/desktops.ts";
import { action, placeOf } from "../model/words.ts";
import { now } from "../state/clock.ts";
import type { Session } from "../state/session.ts";
import type { DesktopView, Event } from "../wire/types.ts";

/** How long an agent's last action is named in the picture, in milliseconds. */
const NAMED_MS = 4_000;

/** The picture of a desktop, and over it where the agents' pointer is and what they just did. */
export function Stage(props: { session: Session; view: DesktopView; control: DesktopControl }): JSX.Element {
  const { session, view, control } = props;
  const { picture } = control;
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    frame.current?.prepend(picture.element);
    // After a reload control may be back before the screen is.
    if (control.standing.peek().kind === "held") picture.focus();
  }, [picture]);
  const held = control.standing.value.kind === "held";
  const state = picture.state.value;
  return (
    <div class={`stage ${held ? "live" : ""} ${picture.scaled.value ? "fit" : "full"}`} data-testid="stage" data-picture={state}>
      <div class="frame" ref={frame}>
        {view.control === "agent" && state === "connected" && <Pointer session={session} view={view} control={control} />}
        {state !== "connected" && (
          <div class="veil" role="status">
            <p>{state === "lost" ? (picture.problem.value?.message ?? "The picture was lost.") : "The picture is coming…"}</p>
          </div>
        )}
      </div>
      {held && (
        <p class="leave-hint small" id="leave-hint">
          The keyboard is with the desktop. <kbd>Ctrl + Alt + Shift</kbd> gets it back.
        </p>
      )}
    </div>
  );
}

/** The agents' pointer: where it last acted, and what it did there. */
function Pointer(props: { session: Session; view: DesktopView; control: DesktopControl }): JSX.Element | null {
  const { session, view, control } = props;
  const last = lastAction(session.log.value.events, view.id);
  const where = lastPlace(session.log.value.events, view.id);
  const [, laidOut] = useState(0);
  useEffect(() => {
    // What is over the picture moves with it.
    const observer = new ResizeObserver(() => laidOut((number) => number + 1));
    observer.observe(control.picture.element);
    const scrolled = () => laidOut((number) => number + 1);
    control.picture.element.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      observer.disconnect();
      control.picture.element.removeEventListener("scroll", scrolled, { capture: true });
    };
  }, [control]);
  const scaled = control.picture.scaled.value;
  if (where === null) return null;
  const place = control.picture.place(where.x, where.y, dimensions(view.size).width);
  if (place === null) return null;
  const fresh = last !== null && now.value - Date.parse(last.at) < NAMED_MS;
  return (
    <div class="agent-pointer" style={{ left: `${place.left}px`, top: `${place.top}px` }} data-scaled={scaled} data-testid="agent-pointer">
      <svg viewBox="0 0 20 20" aria-hidden="true">
        <path d="m2 1 15 8-6.5 2L8 18z" />
      </svg>
      {fresh && last !== null && (
        <>
          {last.kind === "desktop_click" && <i key={last.seq} class="ring" />}
          <span class="agent-act">{action(last)}</span>
        </>
      )}
    </div>
  );
}

function lastAction(events: readonly Event[], desktop: string): Event | null {
  return lastOf(events, (event) => isAct(event, desktop) && event.kind !== "desktop_screenshot");
}

function lastPlace(events: readonly Event[], desktop: string): { x: number; y: number } | null {
  const event = lastOf(events, (one) => isAct(one, desktop) && one.outcome !== "refused" && placeOf(one) !== null);
  return event === null ? null : placeOf(event);
}

function isAct(event: Event, desktop: string): boolean {
  return event.desktop === desktop && event.kind.startsWith("desktop_");
}

function lastOf(events: readonly Event[], wanted: (event: Event) => boolean): Event | null {
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index];
    if (event !== undefined && wanted(event)) return event;
  }
  return null;
}
