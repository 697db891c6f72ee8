import type { JSX } from "preact";

import { version } from "../state/app.ts";
import { theme, type Theme } from "../state/theme.ts";
import { Dialog, Segments } from "./parts.tsx";

const KEYS: readonly { keys: string; what: string }[] = [
  { keys: "Ctrl + Alt + Shift", what: "pressed together and let go: leaves the picture of a desktop, so that the keyboard is with this page again" },
  { keys: "Ctrl + Alt + Shift + X", what: "asks whether to stop everything, from anywhere" },
  { keys: "Ctrl + Enter", what: "sends what was written to an agent" },
  { keys: "↑ ↓ ← → Home End Enter", what: "go through the tree of sessions, fold and unfold it, open what is there" },
  { keys: "Esc", what: "closes a dialog (in a picture that you control it goes to the desktop)" },
];

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: "auto", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** What the keys do. */
export function HelpDialog({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keys" onClose={onClose} testid="help-dialog">
      <dl class="keys">
        {KEYS.map(({ keys, what }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="row wrap">
        <span>Colours</span>
        <Segments label="Colours" value={theme.value} options={THEMES} onChange={(chosen) => (theme.value = chosen)} />
        <span class="spring" />
        <span class="muted small">Handover {version.value}</span>
      </div>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
