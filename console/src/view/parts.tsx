import { useComputed } from "@preact/signals";
import { Fragment, type ComponentChildren, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { statusMeaning, statusWord } from "../model/agents.ts";
import { clean } from "../model/text.ts";
import { age, instant } from "../model/time.ts";
import { now } from "../state/clock.ts";
import { Refusal } from "../wire/refusal.ts";
import type { AgentStatus } from "../wire/types.ts";

/** How long ago something was; only its text changes as time goes on. */
export function Age({ since }: { since: string | null | undefined }): JSX.Element | null {
  const at = instant(since);
  const text = useComputed(() => (at === null ? "" : age(now.value - at)));
  if (at === null) return null;
  return (
    <time class="age" dateTime={since ?? ""} title={new Date(at).toLocaleString()}>
      {text}
    </time>
  );
}

/** Characters without a space after which a line may be broken. */
const LONGEST_WORD = /[^\s]{120}/g;

/** Text in which a browser need not search a very long word for places to break it, which takes it seconds. */
export function Breakable({ text }: { text: string }): JSX.Element {
  const parts = text.replace(LONGEST_WORD, "$&\0").split("\0");
  if (parts.length === 1) return <>{text}</>;
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {part}
          <wbr />
        </Fragment>
      ))}
    </>
  );
}

/** How an agent stands, in colour and in a word. */
export function Status({ status }: { status: AgentStatus }): JSX.Element {
  return (
    <span class={`chip status-${status}`} title={statusMeaning(status)}>
      <i class="dot" aria-hidden="true" />
      {statusWord(status)}
    </span>
  );
}

/** A modal dialog that is open as long as it is rendered. Escape closes it; the focus goes back where it was. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  testid?: string;
  wide?: boolean;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? "dialog wide" : "dialog"}
      aria-labelledby="dialog-title"
      data-testid={props.testid}
      onClose={props.onClose}
    >
      <h2 id="dialog-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** Asks before something is done, and says if it failed. */
export function Confirm(props: {
  title: string;
  action: string;
  danger?: boolean;
  testid: string;
  children: ComponentChildren;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  // A second click may come before the button is drawn as one that cannot be clicked.
  const underWay = useRef(false);
  const confirm = async () => {
    if (underWay.current) return;
    underWay.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await props.onConfirm();
      props.onClose();
    } catch (thrown) {
      setProblem(Refusal.of(thrown).message);
      setBusy(false);
      underWay.current = false;
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose} testid={`${props.testid}-dialog`}>
      <div class="stack">{props.children}</div>
      {problem !== null && <Problem text={problem} />}
      <div class="actions">
        <button type="button" onClick={props.onClose} data-testid={`${props.testid}-cancel`}>
          Cancel
        </button>
        <button
          type="button"
          class={props.danger ? "danger" : "primary"}
          disabled={busy}
          onClick={() => void confirm()}
          data-testid={`${props.testid}-confirm`}
        >
          {busy ? "Working…" : props.action}
        </button>
      </div>
    </Dialog>
  );
}

/** What went wrong and what to do. */
export function Problem({ text, children }: { text: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <span>{sentence(clean(text, 2_000))}</span>
      {children}
    </div>
  );
}

/** A message of a host, which begins small, as a sentence. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A button that does something which may fail or take a while. */
export function Act(props: {
  label: string;
  onAct: () => Promise<void>;
  onFail: (refusal: Refusal) => void;
  testid?: string;
  class?: string;
  disabled?: boolean;
  title?: string;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  // As above.
  const underWay = useRef(false);
  const act = async () => {
    if (underWay.current) return;
    underWay.current = true;
    setBusy(true);
    try {
      await props.onAct();
    } catch (thrown) {
      props.onFail(Refusal.of(thrown));
    }
    underWay.current = false;
    setBusy(false);
  };
  return (
    <button
      type="button"
      class={props.class}
      title={props.title}
      disabled={busy || props.disabled === true}
      onClick={() => void act()}
      data-testid={props.testid}
    >
      {props.label}
    </button>
  );
}

/** One of a few choices. */
export function Segments<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: string; testid?: string }[];
  onChange: (value: T) => void;
}): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(({ value, label, testid }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
          data-testid={testid}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

const PATHS: Record<string, string> = {
  back: "m12 4-6 6 6 6",
  chevron: "m8 5 5 5-5 5",
  stop: "M7 3h6l4 4v6l-4 4H7l-4-4V7z",
  bell: "M6 9a4 4 0 0 1 8 0c0 4 2 5 2 5H4s2-1 2-5m3 8h2",
  sun: "M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6M10 2v2m0 12v2M2 10h2m12 0h2M4.3 4.3l1.4 1.4m8.6 8.6 1.4 1.4M4.3 15.7l1.4-1.4m8.6-8.6 1.4-1.4",
  moon: "M15.5 12A6.5 6.5 0 0 1 8 4.5 6.5 6.5 0 1 0 15.5 12",
  auto: "M10 3a7 7 0 1 0 0 14zm0 0a7 7 0 0 1 0 14",
  help: "M7.5 7.5a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8m0 2.5v.1M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15",
  screen: "M3 4h14v9H3zm4 12h6m-3-3v3",
  full: "M4 8V4h4m4 0h4v4m0 4v4h-4m-4 0H4v-4",
  pointer: "m4 3 12 6-5 1.5L8.5 16z",
};

/** A small picture that says nothing that is not said in words too. */
export function Icon({ name }: { name: keyof typeof PATHS }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
