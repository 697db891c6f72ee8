import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { DesktopControl } from "../control/desktop.ts";
import { cleanLine } from "../model/text.ts";
import { controls } from "../state/app.ts";
import { href } from "../state/route.ts";
import type { Session } from "../state/session.ts";
import type { DesktopView } from "../wire/types.ts";
import { useClipboard } from "./Clipboard.tsx";
import { Drawer, type DrawerName } from "./Drawer.tsx";
import { Feed } from "./Feed.tsx";
import { RequestCard } from "./Needs.tsx";
import { Confirm, Icon, Problem, Segments } from "./parts.tsx";
import { Stage } from "./Stage.tsx";
import { Strip } from "./Strip.tsx";
import { who } from "./who.ts";

/** How often the status of a desktop is looked at that another person controls, in milliseconds. */
const LOOK_MS = 3_000;

/** One desktop: its live picture, who has control, and the means to take and return it. */
export function DesktopPage(props: { session: Session; desktop: string; alone?: boolean }): JSX.Element {
  const { session, desktop: id, alone } = props;
  const control = controls.of(session.id, id);
  const view = session.list.value?.desktops.find((one) => one.id === id);
  useEffect(() => (control === null ? undefined : controls.show(control)), [control]);
  useLooking(control, view);
  if (control === null || view === undefined) {
    const known = session.list.value !== null;
    return (
      <div class="page">
        <p class="muted">{known ? `There is no desktop ${cleanLine(id, 40)} in this session.` : "Waiting for the session…"}</p>
        {session.problem.value !== null && <Problem text={session.problem.value} />}
      </div>
    );
  }
  return <Desktop session={session} view={view} control={control} alone={alone === true} />;
}

function Desktop(props: { session: Session; view: DesktopView; control: DesktopControl; alone: boolean }): JSX.Element {
  const { session, view, control, alone } = props;
  const [drawer, setDrawer] = useState<DrawerName | null>(null);
  useClipboard(control);
  const { words, tone, mine } = who(session, view);
  const requests = session.list.value?.requests?.filter((one) => one.desktop === view.id && one.state === "open") ?? [];
  // Clicks may come faster than the page is drawn.
  const open = (name: DrawerName) => setDrawer((now) => (now === name ? null : name));
  return (
    <div class={`desktop-page ${mine ? "in-control" : ""}`} data-testid="desktop-page" data-control={mine ? "mine" : view.control}>
      <div class="page-head desktop-head">
        <h1>{view.id}</h1>
        {!alone && (
          <a class="muted not-narrow" href={href({ at: "session", session: session.id })}>
            {cleanLine(session.manifest.value.name, 60) || session.id}
          </a>
        )}
        <span class={`chip control-${tone}`} role="status" data-testid="desktop-control">
          {words}
        </span>
        <span class="spring" />
        <ViewOptions control={control} />
        <button
          type="button"
          class="feed-button"
          aria-expanded={drawer === "feed"}
          onClick={() => open("feed")}
          data-testid="desktop-feed-open"
        >
          Activity
        </button>
        <PauseButton control={control} paused={view.control === "paused"} person={view.control === "human"} />
      </div>
      <Strip session={session} view={view} control={control} drawer={drawer} onDrawer={open} />
      <div class="stage-row">
        <div class="stage-column">
          {drawer !== null && (
            <Drawer name={drawer} session={session} view={view} control={control} onClose={() => setDrawer(null)} />
          )}
          {requests.length > 0 && !mine && (
            <div class="stage-requests">
              {requests.map((request) => (
                <RequestCard key={request.requestId} session={session.id} request={request} at="desktop" />
              ))}
            </div>
          )}
          <Stage session={session} view={view} control={control} />
        </div>
        {!alone && (
          <aside class="feed-side" aria-label="What happens on this desktop" tabIndex={0}>
            <h2>Activity</h2>
            <Feed session={session} desktop={view.id} />
          </aside>
        )}
      </div>
    </div>
  );
}

/** Looks again and again how a desktop stands while somebody else has it: only that tells until when. */
function useLooking(control: DesktopControl | null, view: DesktopView | undefined): void {
  // Until when, and why nobody may act, only the desktop itself tells.
  const changing = view !== undefined && (view.control !== "agent" || view.phase !== "steady");
  const busy = control !== null && control.standing.value.kind === "held";
  useEffect(() => {
    if (control === null || !changing || busy) return undefined;
    void control.look();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void control.look();
    }, LOOK_MS);
    return () => {
      clearInterval(timer);
      control.pauseReason.value = undefined;
    };
  }, [control, changing, busy]);
}

function ViewOptions({ control }: { control: DesktopControl }): JSX.Element {
  const { picture } = control;
  return (
    <>
      <Segments
        label="Size of the picture"
        value={picture.scaled.value ? "fit" : "full"}
        options={[
          { value: "fit", label: "Fit", testid: "scale-fit" },
          { value: "full", label: "1:1", testid: "scale-full" },
        ]}
        onChange={(value) => picture.scale(value === "fit")}
      />
      {!picture.scaled.value && (
        <button
          type="button"
          class="touch-only"
          aria-pressed={picture.dragging.value}
          onClick={() => picture.drag(!picture.dragging.value)}
          data-testid="drag-view"
        >
          Move picture
        </button>
      )}
      <button
        type="button"
        class="quiet"
        aria-label="Full screen"
        title="Full screen"
        onClick={() => void toggleFullScreen()}
        data-testid="full-screen"
      >
        <Icon name="full" />
      </button>
    </>
  );
}

async function toggleFullScreen(): Promise<void> {
  try {
    if (document.fullscreenElement === null) await document.querySelector(".desktop-page")?.requestFullscreen();
    else await document.exitFullscreen();
  } catch {
    // Some browsers, on phones above all, have no full screen for pages.
  }
}

function PauseButton(props: { control: DesktopControl; paused: boolean; person: boolean }): JSX.Element {
  const { control, paused, person } = props;
  // The question stays the one that was asked, whatever others do meanwhile.
  const [asking, setAsking] = useState<"pause" | "resume" | null>(null);
  const can = paused ? "resume" : "pause";
  const resumes = asking === "resume";
  return (
    <>
      <button type="button" onClick={() => setAsking(can)} data-testid={can}>
        {paused ? "Resume…" : "Pause…"}
      </button>
      {asking !== null && (
        <Confirm
          title={`${resumes ? "Resume" : "Pause"} ${control.desktop}?`}
          action={resumes ? "Resume" : "Pause"}
          testid={asking}
          onClose={() => setAsking(null)}
          onConfirm={() => control.pause(!resumes)}
        >
          {resumes ? (
            <p>The agents may act on it again.</p>
          ) : (
            <p>
              Nobody may act on it until it is resumed: agents are refused, and wait. They are not ended.
              {person && " The person in control loses it."}
            </p>
          )}
        </Confirm>
      )}
    </>
  );
}
