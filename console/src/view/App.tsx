import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Chords } from "../control/chord.ts";
import { controls, link, scope, sessions } from "../state/app.ts";
import { narrow } from "../state/narrow.ts";
import { href, route, type Route } from "../state/route.ts";
import { AgentPage } from "./AgentPage.tsx";
import { DesktopPage } from "./DesktopPage.tsx";
import { Header, opened } from "./Header.tsx";
import { HelpDialog } from "./HelpDialog.tsx";
import { Home } from "./Home.tsx";
import { NeedsList } from "./Needs.tsx";
import { Icon } from "./parts.tsx";
import { Phone } from "./Phone.tsx";
import { RecordPage } from "./RecordPage.tsx";
import { SessionPage, sessionOf } from "./SessionPage.tsx";
import { StopDialog } from "./StopDialog.tsx";
import { Toasts } from "./Toasts.tsx";
import { SessionTree } from "./Tree.tsx";

/** The whole app. */
export function App(): JSX.Element {
  useChords();
  if (link.value === "ended") return <Ended />;
  const here = route.value;
  const allowed = scope.value;
  return (
    <>
      {allowed?.kind === "desktop" ? (
        <Phone session={allowed.session} desktop={allowed.desktop} />
      ) : (
        <div class={`app at-${here.at}`}>
          <a class="skip" href="#main" onClick={skip}>
            Skip to the content
          </a>
          <Header />
          {!narrow.value && (
            <nav class="side" aria-label="Sessions and what needs you">
              <NeedsList />
              <SessionTree />
            </nav>
          )}
          <main id="main" tabIndex={-1}>
            {here.at !== "home" && (
              <a class="back" href={backFrom(here)}>
                <Icon name="back" />
                Back
              </a>
            )}
            <Screen here={here} />
          </main>
        </div>
      )}
      {opened.value === "stop" && <StopDialog onClose={() => (opened.value = null)} />}
      {opened.value === "help" && <HelpDialog onClose={() => (opened.value = null)} />}
      <Toasts />
    </>
  );
}

/** The address is the app's own, so the focus goes there by hand. */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** On a small screen the way back leads to the list; from a record to its session. */
function backFrom(here: Route): string {
  return here.at === "record" ? href({ at: "session", session: here.session }) : href({ at: "home" });
}

function Screen({ here }: { here: Route }): JSX.Element {
  if (here.at === "home") return narrow.value ? <SmallHome /> : <Home />;
  const session = sessionOf(here.session);
  if (session === undefined) {
    return (
      <div class="page">
        <p class="muted">{sessions.value.length === 0 && link.value !== "open" ? "Connecting…" : "That session is not running."}</p>
      </div>
    );
  }
  switch (here.at) {
    case "agent":
      return <AgentPage key={`${session.id}/${here.agent}`} session={session} id={here.agent} />;
    case "desktop":
      return <DesktopPage key={`${session.id}/${here.desktop}`} session={session} desktop={here.desktop} />;
    case "record":
      return <RecordPage key={session.id} session={session} />;
    default:
      return <SessionPage key={session.id} session={session} />;
  }
}

/** What is at the side on a larger screen is the first screen of a small one. */
function SmallHome(): JSX.Element {
  return (
    <div class="side" data-testid="home">
      <h1 class="visually-hidden">Handover</h1>
      <NeedsList />
      <SessionTree />
    </div>
  );
}

function Ended(): JSX.Element {
  return (
    <main class="ended">
      <h1>This link is over</h1>
      <p>
        The console ended, or the time of this link is over. Ask for a new link where Handover runs:{" "}
        <code>handover console link</code>, or start the console again: <code>handover console</code>.
      </p>
      <a class="button primary" href="/">
        Try again
      </a>
    </main>
  );
}

/** The app's own keys, heard wherever the focus is, also in a picture. */
function useChords(): void {
  useEffect(() => {
    const chords = new Chords();
    const hear = (event: KeyboardEvent) => {
      // What is passed on to noVNC has been heard already.
      if (!event.isTrusted) return;
      const { type, code, ctrlKey: ctrl, altKey: alt, shiftKey: shift } = event;
      const chord = chords.hear({ type: type === "keydown" ? "keydown" : "keyup", code, ctrl, alt, shift });
      if (chord === null) return;
      for (const control of controls.all.peek()) {
        if (control.picture.focused) control.picture.letGo();
      }
      if (chord === "emergency") {
        event.preventDefault();
        event.stopPropagation();
        opened.value = "stop";
      } else {
        leavePicture();
      }
    };
    for (const type of ["keydown", "keyup"] as const) addEventListener(type, hear, { capture: true });
    return () => {
      for (const type of ["keydown", "keyup"] as const) removeEventListener(type, hear, { capture: true });
    };
  }, []);
}

/** The keyboard goes from a picture to the button that returns control. */
function leavePicture(): void {
  if (!controls.all.peek().some((control) => control.picture.focused)) return;
  document.querySelector<HTMLElement>('[data-testid="return-control"]')?.focus();
}
