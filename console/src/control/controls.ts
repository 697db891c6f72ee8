import { signal } from "@preact/signals";

import type { Session } from "../state/session.ts";
import type { LeaseEnded, LeaseRequest, LeaseRequestEnded, LeaseWarning } from "../wire/types.ts";
import { DesktopControl } from "./desktop.ts";
import { leaseOf } from "./lease.ts";
import { kept } from "./storage.ts";

/** Input is noted at most this often, in milliseconds. */
const NOTED_MS = 500;

/** This tab's control of all desktops that it has looked at. */
export class Controls {
  readonly all = signal<readonly DesktopControl[]>([]);

  #base: string;
  #find: (session: string) => Session | undefined;
  /** Leases from before a reload that wait for their session to be known. */
  #kept = kept();
  #noted = 0;

  constructor(base: string, find: (session: string) => Session | undefined) {
    this.#base = base;
    this.#find = find;
    const letGo = () => {
      for (const control of this.all.peek()) {
        if (control.standing.peek().kind === "held") control.picture.letGo();
      }
    };
    // A key that is let go elsewhere is never heard of here.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") letGo();
    });
    addEventListener("pagehide", () => {
      letGo();
      for (const control of this.all.peek()) control.leaves(true);
    });
    addEventListener("pageshow", () => {
      for (const control of this.all.peek()) control.leaves(false);
    });
    for (const type of ["keydown", "pointerdown", "pointermove", "wheel"]) {
      addEventListener(type, (event) => this.#input(event), { capture: true, passive: true });
    }
  }

  #input(event: globalThis.Event): void {
    const at = Date.now();
    if (at - this.#noted < NOTED_MS || !(event.target instanceof Node)) return;
    for (const control of this.all.peek()) {
      if (!control.picture.element.contains(event.target)) continue;
      this.#noted = at;
      control.input();
    }
  }

  /** The control of a desktop; null if its session is not known. */
  of(session: string, desktop: string): DesktopControl | null {
    const known = this.#known(session, desktop);
    if (known !== undefined) return known;
    const host = this.#find(session);
    if (host === undefined) return null;
    const control = new DesktopControl(this.#base, host, desktop);
    this.all.value = [...this.all.peek(), control];
    return control;
  }

  #known(session: string, desktop: string): DesktopControl | undefined {
    return this.all.peek().find((one) => one.session === session && one.desktop === desktop);
  }

  /** A screen shows this desktop until the function that is answered is called; in control the picture goes on. */
  show(control: DesktopControl): () => void {
    control.shown = true;
    control.picture.want();
    return () => {
      control.shown = false;
      if (control.busy) return;
      control.picture.leave();
      this.all.value = this.all.peek().filter((one) => one !== control);
    };
  }

  /** The connection to this session, or to all of them, broke. */
  connectionLost(session?: string): void {
    for (const control of this.all.peek()) {
      if (session === undefined || control.session === session) control.connectionLost();
    }
  }

  /** These sessions can be talked to again. */
  connected(sessions: readonly string[]): void {
    for (const control of this.all.peek()) {
      if (sessions.includes(control.session)) control.connected();
    }
    const waiting = this.#kept;
    this.#kept = waiting.filter((held) => !sessions.includes(held.session));
    for (const held of waiting) {
      if (sessions.includes(held.session)) void this.of(held.session, held.desktop)?.restore(held);
    }
  }

  warned(session: string, warning: LeaseWarning): void {
    this.#holder(session, warning.leaseId)?.warned(warning);
  }

  asked(session: string, request: LeaseRequest): void {
    this.#holder(session, request.leaseId)?.asked(request);
  }

  withdrawn(session: string, request: LeaseRequestEnded): void {
    this.#holder(session, request.leaseId)?.withdrawn(request);
  }

  ended(session: string, end: LeaseEnded): void {
    // Also those that had this lease: they may not know yet how it ended.
    for (const control of this.all.peek()) {
      if (control.session === session) control.ended(end);
    }
  }

  #holder(session: string, leaseId: string): DesktopControl | undefined {
    const holds = (one: DesktopControl) => leaseOf(one.standing.peek())?.leaseId === leaseId;
    return this.all.peek().find((one) => one.session === session && holds(one));
  }
}
