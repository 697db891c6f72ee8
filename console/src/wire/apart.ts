import { CONNECTION_LOST, Refusal } from "./refusal.ts";

/** The code with which a call ends that this page withdrew. */
export const WITHDRAWN = "withdrawn";

/** The answer to a call that has a connection of its own, which is open until it is closed. */
export interface Apart<T> {
  result: T;
  close(): void;
}

/**
 * Makes one call on a connection of its own, at whose end the host stops waiting: a call on the connection that all
 * others share cannot be withdrawn.
 *
 * @throws {Refusal} the host's, `connection_lost`, or `withdrawn` if `withdraw` said so.
 */
export function callApart<T>(
  url: string,
  call: { session: string; method: string; params: object },
  withdraw: AbortSignal,
): Promise<Apart<T>> {
  const socket = new WebSocket(url);
  return new Promise((resolve, reject) => {
    const fail = (refusal: Refusal) => {
      reject(refusal);
      socket.close();
    };
    const lost = () => fail(new Refusal(CONNECTION_LOST, "The connection broke before the answer came."));
    withdraw.addEventListener("abort", () => fail(new Refusal(WITHDRAWN, "It was withdrawn.")), { once: true });
    socket.onclose = lost;
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, ...call }));
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const message = JSON.parse(data) as { id?: unknown; result?: T; error?: unknown };
      if (message.id !== 1) return;
      if (message.error !== undefined) fail(Refusal.read(message.error));
      else resolve({ result: message.result as T, close: () => socket.close() });
    };
  });
}
