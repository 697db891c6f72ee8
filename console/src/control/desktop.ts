import { signal } from "@preact/signals";

import { leaseOf as leaseInTheWay } from "../model/desktops.ts";
import { callApart, WITHDRAWN } from "../wire/apart.ts";
import { CONNECTION_LOST, Refusal } from "../wire/refusal.ts";
import { present } from "../state/clock.ts";
import type { Session } from "../state/session.ts";
import type {
  ControlStatus,
  Grant,
  LeaseEnded,
  LeaseRequest,
  LeaseRequestEnded,
  LeaseWarning,
  PauseReason,
  ReturnResult,
} from "../wire/types.ts";
import { everyBeat } from "./beat.ts";
import { FREE, leaseOf, next, type Ended, type Happening, type Held, type Standing, type Terms } from "./lease.ts";
import { Picture } from "./picture.ts";
import { drop } from "../state/drafts.ts";
import { claim, forget, keep, type Kept } from "./storage.ts";

/** How long the host keeps the lease for this tab after its connection broke, in milliseconds. */
export const LINGER_MS = 10_000;
/** How long another person has to answer a request for control, in milliseconds. */
export const ASK_MS = 60_000;
/** A renewal is answered within this time, or the connection is taken for broken, in milliseconds. */
const ANSWER_MS = 6_000;
/** The host tells how a lease ended within this time, in milliseconds. */
const TOLD_MS = 2_000;
/** How long control is waited for while the picture comes, in milliseconds. */
const PICTURE_MS = 10_000;

/** This tab's way of controlling one desktop: its lease, its picture, and what keeps both alive. */
export class DesktopControl {
  readonly session: string;
  readonly desktop: string;
  readonly standing = signal<Standing>(FREE);
  readonly picture: Picture;
  /** Why nobody may act, as far as the host has said it. */
  readonly pauseReason = signal<PauseReason | undefined>(undefined);
  /** Whether some screen shows it. */
  shown = false;

  #base: string;
  #host: Session;
  #asking: AbortController | null = null;
  #release: (() => void) | null = null;
  #stopBeating: (() => void) | null = null;
  #reclaiming = false;
  /** Runs while the connection is gone. */
  #patience: ReturnType<typeof setTimeout> | undefined;
  /** A lease that this tab has given up, and that its host may still keep. */
  #givenUp: { leaseId: string; token: string } | null = null;

  constructor(base: string, host: Session, desktop: string) {
    this.#base = base;
    this.session = host.id;
    this.desktop = desktop;
    this.#host = host;
    const opened = (viewer: string) => void this.#reclaim(viewer);
    this.picture = new Picture(base, host, desktop, opened, () => this.connectionLost());
  }

  /** Whether this tab has, or just takes or returns, control. */
  get busy(): boolean {
    return this.standing.peek().kind !== "free";
  }

  #happens(happening: Happening): void {
    this.standing.value = next(this.standing.peek(), happening, present());
  }

  /** Takes control, or with `ask` asks whoever has it. How it went is in `standing`. */
  async take(terms: Terms, ask: boolean): Promise<void> {
    if (this.busy) return;
    this.#happens({ kind: "take", ask });
    try {
      const viewer = await this.picture.viewer(PICTURE_MS);
      const params = {
        desktop: this.desktop,
        viewer,
        onDisconnect: "linger",
        lingerMs: LINGER_MS,
        ...terms,
      };
      const grant = await (ask ? this.#ask(params) : this.#host.call<Grant>("control.acquire", params));
      const { session, desktop } = this;
      const { leaseId, token, heartbeatMs } = grant;
      const held: Held = { session, desktop, leaseId, token, heartbeatMs, terms, since: present() };
      keep(held);
      // At once: what the host says of this lease from now on counts.
      this.#happens({ kind: "granted", held });
      this.#inHand(held);
      if (this.picture.present !== viewer) {
        // The picture was lost since, and with it what the lease is bound to.
        this.connectionLost();
        this.connected();
      }
      const release = await claim(leaseId, false);
      if (leaseOf(this.standing.peek())?.leaseId === leaseId) this.#release = release;
      else release?.();
    } catch (thrown) {
      const { code, message, data } = Refusal.of(thrown);
      if (code === WITHDRAWN) this.#happens({ kind: "cancelled" });
      else this.#happens({ kind: "refused", code, message, lease: leaseInTheWay(data) });
      if (!this.shown) this.picture.leave();
    }
    this.#host.refresh();
  }

  /** Asks whoever is in control, until they answer or this tab does not want it any more. */
  async #ask(params: { viewer: string }): Promise<Grant> {
    const asking = new AbortController();
    this.#asking = asking;
    const call = { session: this.session, method: "control.request", params: { ...params, waitMs: ASK_MS } };
    const apart = await callApart<Grant>(`${this.#base}/live`, call, asking.signal);
    const { leaseId, token } = apart.result;
    let grant: Grant;
    try {
      // From now on it belongs to the connection that all else of this tab is on.
      grant = await this.#host.call<Grant>("control.reclaim", { leaseId, token, viewer: params.viewer });
    } finally {
      apart.close();
    }
    if (!asking.signal.aborted) return grant;
    await this.#host.call("control.return", { leaseId, token: grant.token, reason: "cancelled" });
    throw new Refusal(WITHDRAWN, "It was given too late.");
  }

  /** Asks no more. */
  cancel(): void {
    this.#asking?.abort();
  }

  /** Takes up a lease from before a reload. Nothing comes of it if another tab has it. */
  async restore({ left, ...held }: Kept): Promise<void> {
    const release = await claim(held.leaseId, left === true);
    if (release === null || this.busy) {
      release?.();
      forget(held.leaseId);
      return;
    }
    this.#release = release;
    this.standing.value = { kind: "lost", held, since: present() };
    this.#wait();
    this.picture.want();
    this.picture.hurry();
    const viewer = this.picture.present;
    if (viewer !== null) await this.#reclaim(viewer);
  }

  /** The page is being left, or is there again after all. */
  leaves(leaving: boolean): void {
    const held = leaseOf(this.standing.peek());
    if (held !== null) keep(held, leaving);
  }

  /** The connection to the host, or the picture's, broke. */
  connectionLost(): void {
    this.#happens({ kind: "connection_lost" });
    if (this.standing.peek().kind !== "lost") return;
    this.#wait();
    this.#stopBeating?.();
    this.#stopBeating = null;
    this.picture.takeInHand(false);
  }

  /** Waits for the connection, for as long as the host keeps the lease without it. */
  #wait(): void {
    this.#patience ??= setTimeout(() => {
      const standing = this.standing.peek();
      if (standing.kind !== "lost") return;
      const { leaseId, token } = standing.held;
      this.#givenUp = { leaseId, token };
      this.#ends(leaseId, "lost");
    }, LINGER_MS);
  }

  #stopWaiting(): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
  }

  /** There is a connection to the host again. */
  connected(): void {
    this.picture.hurry();
    void this.#settle();
    // The picture may have survived what the connection did not.
    const viewer = this.picture.present;
    if (viewer !== null) void this.#reclaim(viewer);
  }

  /** Gives a lease back that this tab has said to be over, should its host still keep it. */
  async #settle(): Promise<void> {
    if (this.#givenUp === null) return;
    try {
      await this.#host.call("control.return", { ...this.#givenUp, reason: "cancelled" });
    } catch (thrown) {
      if (Refusal.of(thrown).code === CONNECTION_LOST) return;
    }
    this.#givenUp = null;
  }

  async #reclaim(viewer: string): Promise<void> {
    const standing = this.standing.peek();
    if (standing.kind !== "lost" || this.#reclaiming) return;
    const { leaseId, token } = standing.held;
    this.#reclaiming = true;
    try {
      const grant = await this.#host.call<Grant>("control.reclaim", { leaseId, token, viewer });
      this.#happens({ kind: "reclaimed", grant });
      const held = leaseOf(this.standing.peek());
      if (held?.leaseId === leaseId) {
        this.#stopWaiting();
        keep(held);
        this.#inHand(held);
      } else {
        // It came too late, and this tab has said so.
        this.#givenUp = { leaseId, token: grant.token };
        await this.#settle();
      }
    } catch (thrown) {
      // What was not answered is tried again with the next connection.
      if (Refusal.of(thrown).code !== CONNECTION_LOST) this.#ends(leaseId, "stale");
    }
    this.#reclaiming = false;
    this.#host.refresh();
  }

  #inHand(held: Held): void {
    this.#stopBeating?.();
    this.#stopBeating = everyBeat(held.heartbeatMs, () => void this.#renew());
    this.picture.takeInHand(true);
  }

  async #renew(): Promise<void> {
    const standing = this.standing.peek();
    if (standing.kind !== "held") return;
    const { leaseId, token } = standing.held;
    // Without an answer control is as good as lost: better to find out in time to reclaim it. That the host itself
    // does not answer is told before.
    const patience = setTimeout(() => {
      if (this.#host.silent.peek()) return;
      this.#host.giveUp();
      this.picture.giveUp();
    }, ANSWER_MS);
    try {
      await this.#host.call("control.renew", { leaseId, token });
    } catch (thrown) {
      if (Refusal.of(thrown).code === "lease_stale") await this.#hasEnded(leaseId);
    } finally {
      clearTimeout(patience);
    }
  }

  /** The host does not know the lease any more. How it ended it tells by itself, once control has returned. */
  async #hasEnded(leaseId: string): Promise<void> {
    this.picture.takeInHand(false);
    await new Promise((resolve) => setTimeout(resolve, TOLD_MS));
    this.#ends(leaseId, "stale");
  }

  /** Gives control back, with a note for the agents. @throws {Refusal} if it is not known to have ended. */
  async giveBack(note: string): Promise<void> {
    const held = leaseOf(this.standing.peek());
    if (held === null) return;
    const { leaseId, token } = held;
    this.picture.takeInHand(false);
    this.#happens({ kind: "return" });
    try {
      const text = note.trim();
      const words = text === "" ? {} : { note: text };
      const { reason } = await this.#host.act<ReturnResult>("control.return", { leaseId, token, ...words });
      this.#ends(leaseId, reason);
    } catch (thrown) {
      const refusal = Refusal.of(thrown);
      if (refusal.code === "lease_stale") {
        this.#ends(leaseId, "stale");
      } else {
        this.#happens({ kind: "return_failed" });
        if (this.standing.peek().kind === "held") this.picture.takeInHand(true);
        throw refusal;
      }
    }
  }

  /** The person did something. */
  input(): void {
    if (this.standing.peek().kind === "held") this.#happens({ kind: "input" });
  }

  /** Shows the host that the person is still there. */
  stay(): void {
    this.picture.stir();
    this.input();
    this.picture.focus();
  }

  /** Gives control to the person who asks for it, or keeps it. @throws {Refusal} */
  async answer(give: boolean): Promise<void> {
    const held = leaseOf(this.standing.peek());
    if (held === null) return;
    const { leaseId, token } = held;
    if (give) this.picture.takeInHand(false);
    else this.picture.focus();
    this.#happens({ kind: "answered", give });
    try {
      await this.#host.act(give ? "control.give" : "control.refuse", { leaseId, token });
    } catch (thrown) {
      // Whoever asked may have gone: then control stays here, and the keyboard with it.
      this.#happens({ kind: "answered", give: false });
      if (this.standing.peek().kind === "held") this.picture.takeInHand(true);
      throw thrown;
    }
  }

  /** Has the host type a secret into the focused window. @throws {Refusal} */
  async secret(text: string): Promise<void> {
    const held = leaseOf(this.standing.peek());
    if (held === null) throw new Refusal("lease_stale", "You are not in control, so nothing was typed.");
    const { leaseId, token } = held;
    await this.#host.act("control.secret", { desktop: this.desktop, text, leaseId, token });
    this.input();
  }

  /** Pauses the desktop, or lets the agents go on. @throws {Refusal} */
  async pause(paused: boolean): Promise<void> {
    const method = paused ? "control.pause" : "control.resume";
    this.#stands(await this.#host.act<ControlStatus>(method, { desktop: this.desktop }));
  }

  #stands(status: ControlStatus): void {
    this.pauseReason.value = status.pauseReason;
    this.#host.stands(status);
  }

  /** Takes control away from whoever has it. @throws {Refusal} */
  async revoke(): Promise<void> {
    this.#stands(await this.#host.act<ControlStatus>("control.revoke", { desktop: this.desktop, force: true }));
  }

  /** Looks how the desktop stands. Failing changes nothing: it is looked again soon. */
  async look(): Promise<void> {
    // A host that does not answer is not asked again and again.
    if (this.#host.silent.peek()) return;
    try {
      this.#stands(await this.#host.call<ControlStatus>("control.status", { desktop: this.desktop }));
    } catch {
      this.#host.refresh();
    }
  }

  warned(warning: LeaseWarning): void {
    this.#happens({ kind: "warning", warning });
  }

  asked(request: LeaseRequest): void {
    this.#happens({ kind: "asked", request });
  }

  withdrawn(request: LeaseRequestEnded): void {
    this.#happens({ kind: "withdrawn", request });
  }

  ended({ leaseId, end }: LeaseEnded): void {
    if (leaseOf(this.standing.peek())?.leaseId === leaseId) this.#ends(leaseId, end);
    else this.#happens({ kind: "ended", leaseId, end });
  }

  #ends(leaseId: string, end: Ended): void {
    if (leaseOf(this.standing.peek())?.leaseId !== leaseId) return;
    this.#stopWaiting();
    drop(`note/${leaseId}`);
    this.#happens({ kind: "ended", leaseId, end });
    this.#stopBeating?.();
    this.#stopBeating = null;
    this.picture.takeInHand(false);
    forget(leaseId);
    this.#release?.();
    this.#release = null;
    if (!this.shown) this.picture.leave();
    this.#host.refresh();
  }
}
