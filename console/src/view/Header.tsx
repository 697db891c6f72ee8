import { signal } from "@preact/signals";
import type { JSX } from "preact";

import { leaseOf } from "../control/lease.ts";
import { askToNotify, permission } from "../state/alerts.ts";
import { controls, link, needs, version } from "../state/app.ts";
import { href, route } from "../state/route.ts";
import { theme, turnTheme } from "../state/theme.ts";
import { complain } from "../state/toasts.ts";
import { Icon } from "./parts.tsx";

/** Which dialog of the header is open. */
export const opened = signal<"stop" | "help" | null>(null);

const LINKS: Record<string, string> = {
  connecting: "Connecting…",
  open: "Connected",
  lost: "No connection, trying again…",
  ended: "This browser is no longer let in",
};

const THEMES: Record<string, string> = { auto: "as the system", light: "light", dark: "dark" };

/** What is reachable from everywhere. */
export function Header(): JSX.Element {
  const here = route.value;
  const shown = (session: string, desktop: string) =>
    here.at === "desktop" && here.session === session && here.desktop === desktop;
  const held = controls.all.value.filter(
    (control) => leaseOf(control.standing.value) !== null && !shown(control.session, control.desktop),
  );
  const count = needs.value.length;
  return (
    <header class="top">
      <a class="brand" href="#/" title={`Handover ${version.value}`}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M9 8v16M23 8v16M9 16h9m-3-4 4 4-4 4" />
        </svg>
        <span class="brand-name">Handover</span>
      </a>
      {count > 0 && (
        <a class="badge" href="#/" data-testid="needs-count">
          {count}
          <span class="wide-only"> {count === 1 ? "needs" : "need"} you</span>
        </a>
      )}
      <span class={`link link-${link.value}`} role="status" data-testid="link">
        <i class="dot" aria-hidden="true" />
        <span class="link-text">{LINKS[link.value]}</span>
      </span>
      <span class="spring" />
      {held.map((control) => (
        <a
          key={`${control.session}/${control.desktop}`}
          class="badge human"
          href={href({ at: "desktop", session: control.session, desktop: control.desktop })}
          data-testid="in-control"
        >
          {control.desktop}: {control.standing.value.kind === "lost" ? "connection broken" : "you are in control"}
        </a>
      ))}
      {permission.value === "default" && (
        <button type="button" class="quiet" onClick={() => void askToNotify().catch(complain)} data-testid="notify">
          <Icon name="bell" />
          <span class="wide-only">Notify me</span>
        </button>
      )}
      <button
        type="button"
        class="quiet not-narrow"
        onClick={turnTheme}
        aria-label={`Colours: ${THEMES[theme.value]}. Change`}
        title={`Colours: ${THEMES[theme.value]}`}
        data-testid="theme"
      >
        <Icon name={theme.value === "auto" ? "auto" : theme.value === "dark" ? "moon" : "sun"} />
      </button>
      <button
        type="button"
        class="quiet"
        onClick={() => (opened.value = "help")}
        aria-label="Help and keys"
        title="Help and keys"
        data-testid="help"
      >
        <Icon name="help" />
      </button>
      <button
        type="button"
        class="danger outline"
        onClick={() => (opened.value = "stop")}
        aria-label="Stop… or pause"
        aria-keyshortcuts="Control+Alt+Shift+X"
        title="Stop or pause (Ctrl+Alt+Shift+X)"
        data-testid="emergency-stop"
      >
        <Icon name="stop" />
        <span class="wide-only">Stop…</span>
      </button>
    </header>
  );
}
