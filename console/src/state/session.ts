import { signal } from "@preact/signals";

import { withStatus } from "../model/desktops.ts";
import { shared, withNews } from "../model/shared.ts";
import { append, EMPTY, fill, skip, startAt, type Log } from "../model/record.ts";
import { CONNECTION_LOST, Refusal } from "../wire/refusal.ts";
import { complain } from "./toasts.ts";
import type { Live } from "../wire/live.ts";
import type { ControlStatus, Event, Gap, JournalResult, ListResult, Manifest } from "../wire/types.ts";

/** Events that come within this time change the page once, in milliseconds. */
const GATHER_MS = 60;
/** However many come, the page changes at most this often, in milliseconds. */
const FLUSH_MS = 250;
/** The list is asked for again so long after something changed, in milliseconds. */
const SETTLE_MS = 120;
/** However much changes, it is asked for at most this often, in milliseconds. */
const REFRESH_MS = 1_000;
/** Events of one page of the record. */
const PAGE = 1_000;
/** Said to who waits for a host that does not answer. */
const UNANSWERED = "Its host does not answer, so this has not been done. It may be once the host goes on.";
/** Kinds after which the list is another one. */
const CHANGES = /^(agent_spawned|agent_status|takeover_|paused|resumed|request_|steer|foreign_connection|gap)/;

/** How long to wait so that `every` milliseconds have passed since `last`, but at least `least`. */
function pause(last: number, every: number, least: number): number {
  return Math.max(least, last + every - Date.now());
}

/** One session, as this tab knows it. */
export class Session {
  readonly id: string;
  readonly manifest;
  /** Its desktops, agents and requests; null until they have been heard of. */
  readonly list = signal<ListResult | null>(null);
  readonly log = signal<Log>(EMPTY);
  /** Why nothing is heard of it, if that is so. */
  readonly problem = signal<string | null>(null);
  /** Whether its host is there and does not answer. */
  readonly silent = signal(false);
  /** Whether a page of the record is being read. */
  readonly reading = signal(false);

  #live: Live;
  /** Whether this browser is shown only a part of the session. */
  #some: boolean;
  #begun = false;
  #queue: (Event | { gap: Gap })[] = [];
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #refreshing: ReturnType<typeof setTimeout> | undefined;
  #listing = false;
  #flushed = 0;
  #listed = 0;
  #stale = false;
  /** Gives up what a person waits for. */
  #givingUp = new Set<() => void>();

  constructor(live: Live, manifest: Manifest, some: boolean) {
    this.id = manifest.sessionId;
    this.manifest = signal(manifest);
    this.#live = live;
    this.#some = some;
  }

  /** Asks its host, however long it does not answer. @throws {Refusal} */
  call<T>(method: string, params: object = {}): Promise<T> {
    return this.#live.call<T>(this.id, method, params);
  }

  /**
   * Asks its host for what a person waits for. If it does not answer, nobody waits any longer; it was asked all the
   * same.
   *
   * @throws {Refusal} `timeout` among others.
   */
  act<T>(method: string, params: object = {}): Promise<T> {
    const answer = this.call<T>(method, params);
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(new Refusal("timeout", UNANSWERED));
      const done = () => this.#givingUp.delete(giveUp);
      this.#givingUp.add(giveUp);
      answer.then(resolve, reject).finally(done);
      if (this.silent.peek()) giveUp();
    });
  }

  /** Its host does not answer. */
  fallsSilent(): void {
    this.silent.value = true;
    const { pid } = this.manifest.peek();
    this.problem.value =
      `Its host (process ${pid}) does not answer: it is stopped or overloaded. What is shown is from before. ` +
      `If it was stopped, kill -CONT ${pid} lets it go on.`;
    for (const giveUp of [...this.#givingUp]) giveUp();
  }

  /** Its host answers. */
  answers(): void {
    this.silent.value = false;
    this.problem.value = null;
    this.refresh();
  }

  /** The connection does not answer any more, and is made anew. */
  giveUp(): void {
    this.#live.giveUp();
  }

  /** Listens from now on, or goes on where it stopped. Called whenever there is a new connection. */
  async begin(): Promise<void> {
    try {
      const since = this.#begun ? { since: this.log.peek().last } : {};
      const { cursor } = await this.call<{ cursor: number }>("subscribe", since);
      if (!this.#begun) this.log.value = startAt(cursor);
      this.#begun = true;
      this.answers();
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  /** A call failed. That there is no connection to the console is shown once for all, and begins anew by itself. */
  #failed(thrown: unknown): void {
    const { code, message } = Refusal.of(thrown);
    if (code !== CONNECTION_LOST) this.problem.value = message;
  }

  /** Its host is gone; what was known stays to be read. */
  closed(message: string): void {
    this.silent.value = false;
    this.problem.value = message;
  }

  /** A notification of its record. */
  hear(method: string, params: unknown): void {
    if (method === "event") this.#queue.push(params as Event);
    else if (method === "gap") this.#queue.push({ gap: params as Gap });
    this.#flushing ??= setTimeout(() => this.#flush(), pause(this.#flushed, FLUSH_MS, GATHER_MS));
  }

  #flush(): void {
    this.#flushing = undefined;
    this.#flushed = Date.now();
    const queue = this.#queue;
    this.#queue = [];
    let log = this.log.peek();
    let news: Event[] = [];
    let changed = false;
    for (const one of queue) {
      if ("gap" in one && typeof one.gap === "object") {
        log = skip(append(log, news, this.#some), one.gap as Gap);
        news = [];
        changed = true;
      } else {
        news.push(one as Event);
        changed ||= CHANGES.test((one as Event).kind);
      }
    }
    this.log.value = append(log, news, this.#some);
    const list = this.list.peek();
    if (list !== null) this.list.value = withNews(list, news);
    if (changed) this.refresh();
  }

  /** Asks for the list again, soon. */
  refresh(): void {
    if (this.#listing) this.#stale = true;
    else this.#refreshing ??= setTimeout(() => void this.#relist(), pause(this.#listed, REFRESH_MS, SETTLE_MS));
  }

  async #relist(): Promise<void> {
    this.#refreshing = undefined;
    this.#listing = true;
    this.#listed = Date.now();
    this.#stale = false;
    try {
      this.list.value = shared(this.list.peek(), await this.call<ListResult>("list"));
      this.silent.value = false;
      this.problem.value = null;
    } catch (thrown) {
      this.#failed(thrown);
    }
    this.#listing = false;
    if (this.#stale) this.refresh();
  }

  /** Takes in what a desktop says of itself. */
  stands(status: ControlStatus): void {
    const list = this.list.peek();
    if (list === null) return;
    const desktops = list.desktops.map((one) => (one.id === status.desktop ? withStatus(one, status) : one));
    this.list.value = { ...list, desktops };
  }

  /** Whether there is more of the record before what is known. */
  get hasEarlier(): boolean {
    return this.#begun && this.log.value.first > 1;
  }

  /** Reads the page of the record before what is known. */
  async earlier(): Promise<void> {
    const { first } = this.log.peek();
    if (!this.#begun || first <= 1) return;
    const since = Math.max(0, first - 1 - PAGE);
    await this.#read(since, first - 1 - since);
  }

  /** Reads what a gap left out, or the first page of it. */
  async mend(gap: Gap): Promise<void> {
    await this.#read(gap.from - 1, Math.min(PAGE, gap.to - gap.from + 1));
  }

  async #read(since: number, limit: number): Promise<void> {
    if (this.reading.peek()) return;
    this.reading.value = true;
    try {
      const page = await this.act<JournalResult>("journal", { since, limit });
      this.log.value = fill(this.log.peek(), page.events, since, Math.max(page.next, since + limit));
    } catch (thrown) {
      complain(thrown);
    }
    this.reading.value = false;
  }
}
