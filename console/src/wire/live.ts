import { backoff } from "./backoff.ts";
import { CONNECTION_LOST, Refusal } from "./refusal.ts";
import type { Sessions } from "./types.ts";

/** How the connection to the server stands; `ended` if this browser may no longer connect. */
export type LinkState = "connecting" | "open" | "lost" | "ended";

/** Whom the connection tells of what comes unasked. */
export interface Listener {
  state(state: LinkState): void;
  sessions(sessions: Sessions): void;
  notice(session: string, method: string, params: unknown): void;
}

interface Waiting {
  done(result: unknown): void;
  failed(refusal: Refusal): void;
}

/** Calls that wait for an answer at most; more are refused here. */
const MOST_CALLS = 1_000;

/** The longest call, in bytes. The server closes a connection on which more comes, and control would go with it. */
const LONGEST = 1 << 20;

/** How long the server may take to say whether this browser is still let in, in milliseconds. */
const PROBE_MS = 3_000;

/** After this long without an answer to the handshake, a connection counts as failed, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * The one connection of this tab to the server: calls to all hosts, and what they tell. It comes back by itself.
 * Calls under way when it breaks fail with `connection_lost`; none is repeated by itself.
 */
export class Live {
  #url: string;
  #listener: Listener;
  #socket: WebSocket | null = null;
  #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string, listener: Listener) {
    this.#url = url;
    this.#listener = listener;
    // What a browser knows of its network saves waiting for the next try.
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#retryNow();
    });
    this.#connect();
  }

  /**
   * Asks a host. The answer is trusted to have the shape of `T`: it comes from this user's own host.
   *
   * @throws {Refusal} the host's, or `connection_lost`.
   */
  call<T>(session: string, method: string, params: object = {}): Promise<T> {
    const socket = this.#socket;
    if (socket === null || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(lost("There is no connection to the console just now. It is tried again by itself."));
    }
    if (this.#waiting.size >= MOST_CALLS) {
      return Promise.reject(new Refusal("queue_full", "Too many calls wait for an answer. Try again in a moment."));
    }
    const id = this.#nextId++;
    const text = JSON.stringify({ session, id, method, params });
    if (new TextEncoder().encode(text).length > LONGEST) {
      const refusal = new Refusal("line_too_long", "That is more than a mebibyte of text. Send less at once.");
      return Promise.reject(refusal);
    }
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { done: (result) => resolve(result as T), failed: reject });
      socket.send(text);
    });
  }

  #connect(): void {
    this.#listener.state(this.#failures === 0 ? "connecting" : "lost");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    const patience = setTimeout(() => socket.close(), PATIENCE_MS);
    socket.onopen = () => {
      clearTimeout(patience);
      if (this.#socket !== socket) return;
      this.#failures = 0;
      this.#listener.state("open");
    };
    socket.onmessage = (message) => {
      if (this.#socket === socket) this.#hear(message.data);
    };
    socket.onclose = () => {
      clearTimeout(patience);
      this.#lose(socket);
    };
  }

  /**
   * What should have been answered long ago was not: the network is gone without having said so. The connection is
   * given up, and made anew.
   */
  giveUp(): void {
    const socket = this.#socket;
    if (socket === null) return;
    // A handshake with a network that is gone takes too long to wait for.
    this.#lose(socket);
    socket.close();
  }

  #lose(socket: WebSocket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#failures += 1;
    this.#listener.state("lost");
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const call of waiting) call.failed(lost("The connection broke before the answer came."));
    this.#timer = setTimeout(() => void this.#again(), backoff(this.#failures - 1, Math.random()));
  }

  /** Tries again, unless the server says that this browser may not. */
  async #again(): Promise<void> {
    this.#timer = undefined;
    // A WebSocket does not tell why it was refused, a plain request does.
    const signal = AbortSignal.timeout(PROBE_MS);
    const status = await fetch("/", { method: "HEAD", cache: "no-store", signal }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 401 || status === 403) {
      this.#listener.state("ended");
    } else if (this.#socket === null && this.#timer === undefined) {
      this.#connect();
    }
  }

  #retryNow(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    void this.#again();
  }

  #hear(data: unknown): void {
    const message = parse(data);
    if (message === null) return;
    if (typeof message.id === "number") {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error !== undefined) waiting?.failed(Refusal.read(message.error));
      else waiting?.done(message.result);
    } else if (message.method === "sessions") {
      this.#listener.sessions(message.params as Sessions);
    } else if (typeof message.method === "string" && typeof message.session === "string") {
      this.#listener.notice(message.session, message.method, message.params);
    }
  }
}

interface Message {
  id?: unknown;
  session?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

function parse(data: unknown): Message | null {
  if (typeof data !== "string") return null;
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

function lost(message: string): Refusal {
  return new Refusal(CONNECTION_LOST, message);
}
