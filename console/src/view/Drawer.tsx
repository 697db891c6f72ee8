import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { DesktopControl } from "../control/desktop.ts";
import type { Terms } from "../control/lease.ts";
import type { Session } from "../state/session.ts";
import { say } from "../state/toasts.ts";
import { Refusal } from "../wire/refusal.ts";
import type { DesktopView } from "../wire/types.ts";
import { Clipboard } from "./Clipboard.tsx";
import { Feed } from "./Feed.tsx";
import { Keys } from "./Keys.tsx";
import { Problem } from "./parts.tsx";
import { terms } from "./terms.ts";

export type DrawerName = "keys" | "clipboard" | "secret" | "terms" | "feed";

const TITLES: Record<DrawerName, string> = {
  keys: "Keys",
  clipboard: "Clipboard",
  secret: "Type a secret",
  terms: "How control is taken",
  feed: "Activity",
};

/** The tools of a desktop, one at a time over its picture. */
export function Drawer(props: {
  name: DrawerName;
  session: Session;
  view: DesktopView;
  control: DesktopControl;
  onClose: () => void;
}): JSX.Element | null {
  const { name, session, view, control, onClose } = props;
  const held = control.standing.value.kind === "held";
  const drawer = useRef<HTMLElement>(null);
  // Before it is seen: whoever is quick has clicked into another of its fields by the time of a later effect.
  useLayoutEffect(() => {
    drawer.current?.querySelector<HTMLElement>("input, select, textarea, [role=group] button")?.focus();
  }, [name]);
  const close = () => {
    onClose();
    if (held) control.picture.focus();
  };
  // Tools of who is in control go with it.
  if (!held && name !== "terms" && name !== "feed") return null;
  if (held && name === "terms") return null;
  return (
    <section
      class="drawer"
      ref={drawer}
      aria-labelledby="drawer-title"
      onKeyDown={(event) => event.key === "Escape" && close()}
      data-testid={`${name}-drawer`}
    >
      <div class="row">
        <h2 id="drawer-title">{TITLES[name]}</h2>
        <span class="spring" />
        <button type="button" class="quiet" onClick={close} data-testid="drawer-close">
          Close
        </button>
      </div>
      {name === "keys" && <Keys control={control} />}
      {name === "clipboard" && <Clipboard control={control} />}
      {name === "secret" && <Secret control={control} />}
      {name === "terms" && <TakeTerms />}
      {name === "feed" && <Feed session={session} desktop={view.id} />}
    </section>
  );
}

/** A secret goes to the focused window of the desktop and nowhere else: neither agents nor the record see it. */
function Secret({ control }: { control: DesktopControl }): JSX.Element {
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("secret");
    if (!(field instanceof HTMLInputElement) || field.value === "") return;
    const text = field.value;
    // Gone from the page before anything else happens.
    field.value = "";
    setBusy(true);
    setProblem(null);
    try {
      await control.secret(text);
      say("The secret was typed. Only that it happened is recorded.");
    } catch (thrown) {
      setProblem(Refusal.of(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form class="stack tight" onSubmit={(event) => void send(event)}>
      <p class="small muted" id="secret-hint">
        It is typed into the window that has the focus on the desktop: click into the field there first. It is stored
        nowhere, not even how long it is; agents are told only that control returned.
      </p>
      <div class="row">
        <label class="grow">
          <span class="visually-hidden">Secret</span>
          <input
            type="password"
            name="secret"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            data-1p-ignore
            data-lpignore="true"
            aria-describedby="secret-hint"
            data-testid="secret-field"
          />
        </label>
        <button type="submit" class="primary" disabled={busy} data-testid="secret-send">
          Type it
        </button>
      </div>
      {problem !== null && <Problem text={problem} />}
    </form>
  );
}

const MINUTE = 60_000;
const IDLE: readonly number[] = [1, 5, 15, 60];
const LONGEST: readonly number[] = [0, 5, 15, 60, 240];

function TakeTerms(): JSX.Element {
  const { idleMs, maxMs, note } = terms.value;
  const change = (some: Partial<Terms>) => (terms.value = { ...terms.peek(), ...some });
  return (
    <div class="terms">
      <label class="choice">
        <span>Ends without input after</span>
        <select
          value={String(idleMs / MINUTE)}
          onChange={(event) => change({ idleMs: Number(event.currentTarget.value) * MINUTE })}
          data-testid="terms-idle"
        >
          {IDLE.map((minutes) => (
            <option key={minutes} value={String(minutes)}>
              {minutes} min
            </option>
          ))}
        </select>
      </label>
      <label class="choice">
        <span>Ends in any case after</span>
        <select
          value={String((maxMs ?? 0) / MINUTE)}
          onChange={(event) => {
            const minutes = Number(event.currentTarget.value);
            const { maxMs: _former, ...rest } = terms.peek();
            terms.value = minutes === 0 ? rest : { ...rest, maxMs: minutes * MINUTE };
          }}
          data-testid="terms-max"
        >
          {LONGEST.map((minutes) => (
            <option key={minutes} value={String(minutes)}>
              {minutes === 0 ? "no limit" : `${minutes} min`}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={terms.value.private === true}
          onChange={(event) => change({ private: event.currentTarget.checked })}
          data-testid="private"
        />
        Private: agents get no picture meanwhile
      </label>
      <label class="choice grow">
        <span>Why (recorded, and shown to whoever you ask)</span>
        <input
          value={note ?? ""}
          maxLength={500}
          autocomplete="off"
          onInput={(event) => {
            const text = event.currentTarget.value;
            const { note: _former, ...rest } = terms.peek();
            terms.value = text.trim() === "" ? rest : { ...rest, note: text };
          }}
          data-testid="take-note"
        />
      </label>
    </div>
  );
}
