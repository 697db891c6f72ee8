import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { DesktopControl } from "../control/desktop.ts";
import { say } from "../state/toasts.ts";

/** The clipboard of the desktop and that of this computer, by hand; only while in control. */
export function Clipboard({ control }: { control: DesktopControl }): JSX.Element {
  // A signal, since what was typed last must not wait for the next frame.
  const text = useSignal("");
  const copied = control.picture.copied.value;
  // Without a secure context there are only the text fields.
  const direct = "clipboard" in navigator;
  const send = (what: string) => {
    control.picture.paste(what);
    control.input();
    say("The desktop's clipboard has it. Paste it there.");
  };
  const fromHere = async () => {
    try {
      send(await navigator.clipboard.readText());
    } catch {
      say("The browser does not let this page read the clipboard: paste into the field instead.");
    }
  };
  return (
    <div class="clipboards">
      <form
        class="stack tight"
        onSubmit={(event) => {
          event.preventDefault();
          send(text.peek());
          text.value = "";
        }}
      >
        <label>
          To the desktop
          <textarea rows={3} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} data-testid="clipboard-in" />
        </label>
        <div class="row">
          <button type="submit" class="primary" disabled={text.value === ""} data-testid="clipboard-send">
            Send
          </button>
          {direct && (
            <button type="button" onClick={() => void fromHere()} data-testid="clipboard-read">
              Send this computer’s clipboard
            </button>
          )}
        </div>
      </form>
      <div class="stack tight">
        <label>
          From the desktop
          <textarea rows={3} readOnly value={copied ?? ""} placeholder="What is copied on the desktop appears here" data-testid="clipboard-out" />
        </label>
        {direct && (
          <div class="row">
            <button type="button" disabled={copied === null} onClick={() => void toHere(copied ?? "")} data-testid="clipboard-copy">
              Copy to this computer
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

async function toHere(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not let this page write the clipboard: copy from the field instead.");
  }
}

/**
 * Keeps both clipboards the same while in control: what is copied on the desktop is written to this computer's where
 * the browser lets the page, and this computer's is offered where the person has allowed the page to read it.
 */
export function useClipboard(control: DesktopControl): void {
  const held = control.standing.value.kind === "held";
  const copied = control.picture.copied.value;
  useEffect(() => {
    if (!held || copied === null || !("clipboard" in navigator) || !document.hasFocus()) return;
    // Refused without a permission: then the text field shows it.
    navigator.clipboard.writeText(copied).catch(() => {});
  }, [held, copied]);
  useEffect(() => {
    if (!held || !("clipboard" in navigator)) return undefined;
    let last: string | null = null;
    const offer = async () => {
      if (!(await mayRead())) return;
      const text = await navigator.clipboard.readText().catch(() => "");
      if (text === "" || text === last || text === control.picture.copied.peek()) return;
      last = text;
      control.picture.paste(text);
    };
    const offered = () => void offer();
    offered();
    addEventListener("focus", offered);
    return () => removeEventListener("focus", offered);
  }, [held, control]);
}

/** Whether the clipboard can be read without asking the person. */
async function mayRead(): Promise<boolean> {
  if (!document.hasFocus()) return false;
  try {
    const status = await navigator.permissions.query({ name: "clipboard-read" as PermissionName });
    return status.state === "granted";
  } catch {
    return false;
  }
}
