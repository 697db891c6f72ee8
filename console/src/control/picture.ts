import { signal } from "@preact/signals";
import type RFB from "@novnc/novnc";

import { typingField } from "./typing.ts";
import { backoff } from "../wire/backoff.ts";
import { Refusal } from "../wire/refusal.ts";
import { clean } from "../model/text.ts";
import type { Session } from "../state/session.ts";

/** How the picture of a desktop stands. */
export type PictureState = "closed" | "connecting" | "connected" | "lost";

/** The longest text that is kept of the desktop's clipboard, in characters. */
const LONGEST_COPY = 1_000_000;

/**
 * The live picture of one desktop: one connection through the gate, whose input counts only while this tab's lease is
 * bound to it. It lives outside of the page's components, so that neither a change of screens nor one of control
 * touches the connection. It comes back by itself as long as it is wanted.
 */
export class Picture {
  /** Where the picture is; components put it into the page. */
  readonly element = document.createElement("div");
  readonly state = signal<PictureState>("closed");
  /** Why there is no picture. */
  readonly problem = signal<Refusal | null>(null);
  /** What was copied on the desktop while this tab was in control. */
  readonly copied = signal<string | null>(null);
  readonly scaled = signal(true);
  /** Whether a finger moves the picture instead of the pointer. */
  readonly dragging = signal(false);

  #base: string;
  #session: Session;
  #desktop: string;
  #opened: (viewer: string) => void;
  #lost: () => void;
  #field: HTMLTextAreaElement;
  #rfb: RFB | null = null;
  #viewer: string | null = null;
  #wanted = false;
  #inHand = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the tries, so that a slow one does not come after a newer. */
  #try = 0;
  #waiting: (() => void)[] = [];

  /** `opened` hears of each new viewer, `lost` of each that is gone against our will. */
  constructor(base: string, session: Session, desktop: string, opened: (viewer: string) => void, lost: () => void) {
    this.#base = base;
    this.#session = session;
    this.#desktop = desktop;
    this.#opened = opened;
    this.#lost = lost;
    this.element.className = "picture";
    this.#field = typingField({
      inHand: () => this.#inHand,
      canvas: () => this.#canvas,
      tap: (keysym) => this.#rfb?.sendKey(keysym, null),
      left: () => this.#inHand && this.letGo(),
    });
    this.element.append(this.#field);
  }

  /** Opens it, if it is not. */
  want(): void {
    this.#wanted = true;
    if (this.state.peek() === "closed") void this.#open();
  }

  /** Closes it. */
  leave(): void {
    this.#wanted = false;
    this.#try++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drop();
    this.state.value = "closed";
  }

  /** Opens it anew at once if it waits for its next try, as when the connection to the server is back. */
  hurry(): void {
    if (!this.#wanted || this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.#open();
  }

  /** Its connection went the way of another that does not answer any more: it is made anew. */
  giveUp(): void {
    if (!this.#wanted || this.#rfb === null) return;
    this.#drop();
    this.#later();
  }

  /** The viewer that it has, connected or not. */
  get present(): string | null {
    return this.#viewer;
  }

  /** The viewer to bind a lease to, as soon as there is one. @throws {Refusal} if there is none in time. */
  async viewer(patienceMs: number): Promise<string> {
    if (this.state.peek() !== "connected") {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        setTimeout(resolve, patienceMs);
      });
    }
    if (this.state.peek() === "connected" && this.#viewer !== null) return this.#viewer;
    throw this.problem.peek() ?? new Refusal("timeout", "The picture did not come in time, so control was not asked for.");
  }

  /** Whether what is typed and pointed goes to the desktop. */
  takeInHand(inHand: boolean): void {
    if (!inHand) {
      this.letGo();
      this.copied.value = null;
    }
    this.#inHand = inHand;
    this.#field.tabIndex = inHand ? 0 : -1;
    if (!inHand && this.focused) this.#field.blur();
    if (this.#rfb === null) return;
    this.#rfb.viewOnly = !inHand;
    if (inHand) this.focus();
  }

  /** Gives the keyboard to the picture. */
  focus(): void {
    if (this.element.isConnected) this.#field.focus({ preventScroll: true });
  }

  /** Whether the keyboard is with the picture. */
  get focused(): boolean {
    return this.element.contains(document.activeElement);
  }

  /** Releases every key and button that this tab still holds down. */
  letGo(): void {
    // noVNC releases all keys when the window loses the focus, which is exactly what is wanted here.
    window.dispatchEvent(new FocusEvent("blur"));
    if (this.#buttons !== 0) this.#point("mouseup");
  }

  /** Shows the host that there is a person, without doing anything: the pointer goes where it is. */
  stir(): void {
    this.#point("mousemove");
  }

  /** Where the pointer was last, in the page. */
  #at: { clientX: number; clientY: number } | null = null;
  #buttons = 0;

  #point(type: "mouseup" | "mousemove"): void {
    const canvas = this.#canvas;
    if (canvas === null) return;
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const at = this.#at ?? { clientX: left + width / 2, clientY: top + height / 2 };
    if (type === "mouseup") this.#buttons = 0;
    canvas.dispatchEvent(new MouseEvent(type, { ...at, buttons: this.#buttons, bubbles: true, cancelable: true }));
  }

  get #canvas(): HTMLCanvasElement | null {
    return this.element.querySelector("canvas");
  }

  /** Presses and releases a key, or only one of both. */
  key(keysym: number, code: string | null, down?: boolean): void {
    this.#rfb?.sendKey(keysym, code, down);
  }

  /** Offers a text to the desktop's clipboard. */
  paste(text: string): void {
    this.#rfb?.clipboardPasteFrom(text);
  }

  /** Fits the picture into its place, or shows it 1:1. */
  scale(scaled: boolean): void {
    this.scaled.value = scaled;
    this.#lay();
  }

  /** Lets a finger move the picture, or the pointer. */
  drag(dragging: boolean): void {
    this.dragging.value = dragging;
    this.#lay();
  }

  #lay(): void {
    if (this.#rfb === null) return;
    this.#rfb.scaleViewport = this.scaled.peek();
    // A finger cannot use scroll bars: it drags what is cut off into view.
    this.#rfb.clipViewport = !this.scaled.peek() && matchMedia("(pointer: coarse)").matches;
    this.#rfb.dragViewport = this.dragging.peek() && !this.scaled.peek();
  }

  /** Where a point of the desktop is in the page, or null while there is no picture. */
  place(x: number, y: number, width: number): { left: number; top: number } | null {
    const canvas = this.#canvas?.getBoundingClientRect();
    if (canvas === undefined || canvas.width === 0) return null;
    const within = this.element.getBoundingClientRect();
    const scale = this.scaled.peek() ? canvas.width / width : 1;
    return { left: canvas.left - within.left + x * scale, top: canvas.top - within.top + y * scale };
  }

  async #open(): Promise<void> {
    const mine = ++this.#try;
    this.state.value = "connecting";
    try {
      // noVNC is the larger part of the app, and only who looks at a desktop needs it.
      const [{ default: Rfb }, { viewer }] = await Promise.all([
        import("@novnc/novnc"),
        this.#session.call<{ viewer: string }>("view.open", { desktop: this.#desktop }),
      ]);
      if (mine !== this.#try || !this.#wanted) return;
      this.#viewer = viewer;
      this.#opened(viewer);
      this.#connect(Rfb, viewer);
    } catch (thrown) {
      if (mine !== this.#try) return;
      this.problem.value = Refusal.of(thrown);
      this.#later();
    }
  }

  #connect(Rfb: typeof RFB, viewer: string): void {
    const url = `${this.#base}/view/${encodeURIComponent(this.#session.id)}/${encodeURIComponent(viewer)}`;
    const rfb = new Rfb(this.element, url, { shared: true, wsProtocols: ["binary"] });
    this.#rfb = rfb;
    rfb.viewOnly = !this.#inHand;
    rfb.background = "transparent";
    rfb.showDotCursor = true;
    rfb.focusOnClick = false;
    this.#lay();
    rfb.addEventListener("connect", () => {
      if (this.#rfb !== rfb) return;
      this.#failures = 0;
      this.problem.value = null;
      this.state.value = "connected";
      this.#describe();
      this.#followPointer();
      for (const resolve of this.#waiting.splice(0)) resolve();
      if (this.#inHand) this.focus();
    });
    rfb.addEventListener("disconnect", () => {
      if (this.#rfb !== rfb) return;
      this.#rfb = null;
      this.#viewer = null;
      this.problem.value ??= new Refusal("display_unavailable", "The picture was cut off. It is tried again by itself.");
      this.#lost();
      this.#later();
    });
    rfb.addEventListener("clipboard", (event) => {
      const { text } = (event as CustomEvent<{ text: string }>).detail;
      if (this.#inHand) this.copied.value = text.slice(0, LONGEST_COPY);
    });
  }

  /** What a screen reader says of the picture. */
  #describe(): void {
    const canvas = this.#canvas;
    if (canvas === null) return;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Live picture of desktop ${clean(this.#desktop, 40)}`);
  }

  #followPointer(): void {
    const follow = ({ clientX, clientY, buttons }: PointerEvent) => {
      this.#at = { clientX, clientY };
      this.#buttons = buttons;
    };
    for (const type of ["pointerdown", "pointermove", "pointerup"] as const) {
      this.#canvas?.addEventListener(type, follow);
    }
    this.#canvas?.addEventListener("pointerdown", () => this.#inHand && this.focus());
  }

  #later(): void {
    if (!this.#wanted) return;
    this.state.value = "lost";
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#wanted) void this.#open();
    }, backoff(this.#failures++, Math.random()));
  }

  #drop(): void {
    const rfb = this.#rfb;
    this.#rfb = null;
    this.#viewer = null;
    rfb?.disconnect();
  }
}
