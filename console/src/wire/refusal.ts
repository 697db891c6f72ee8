/** Why something was not done. */
export class Refusal extends Error {
  /** The stable code of the wire, or `connection_lost`. */
  readonly code: string;
  /** Facts by name, such as `lease`. */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, data: Record<string, unknown> = {}) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.data = data;
  }

  /** Reads the `error` member of an answer. */
  static read(error: unknown): Refusal {
    const { message, data } = record(error);
    const facts = record(data);
    const code = typeof facts.code === "string" ? facts.code : "internal";
    return new Refusal(code, typeof message === "string" ? message : "The host gave no reason.", facts);
  }

  /** Any thrown value as a refusal. */
  static of(thrown: unknown): Refusal {
    if (thrown instanceof Refusal) return thrown;
    return new Refusal("internal", thrown instanceof Error ? thrown.message : String(thrown));
  }
}

/** The code of a call whose answer did not come because the connection broke: it may have had its effect. */
export const CONNECTION_LOST = "connection_lost";

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
