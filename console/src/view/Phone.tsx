import type { JSX } from "preact";

import { countdown } from "../model/time.ts";
import { link, linkEnds } from "../state/app.ts";
import { now } from "../state/clock.ts";
import { DesktopPage } from "./DesktopPage.tsx";
import { sessionOf } from "./SessionPage.tsx";

/** The screen of a link to one desktop: nothing but it. */
export function Phone(props: { session: string; desktop: string }): JSX.Element {
  const session = sessionOf(props.session);
  const until = linkEnds.value;
  return (
    <main class="phone" id="main">
      <div class="phone-top">
        <span class={`link link-${link.value}`} role="status">
          <i class="dot" aria-hidden="true" />
          {link.value === "open" ? "Connected" : "No connection, trying again…"}
        </span>
        <span class="spring" />
        {until !== null && (
          <span class="small muted" data-testid="link-left">
            this link lasts {countdown(until - now.value)}
          </span>
        )}
      </div>
      {session === undefined ? (
        <p class="page muted">Waiting for the session…</p>
      ) : (
        <DesktopPage session={session} desktop={props.desktop} alone />
      )}
    </main>
  );
}
