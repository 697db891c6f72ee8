import { signal } from "@preact/signals";

import type { Terms } from "../control/lease.ts";

/** Without input for so long control ends, unless chosen otherwise, in milliseconds. */
export const USUAL_IDLE_MS = 5 * 60_000;

/** The terms on which this tab takes control next. */
export const terms = signal<Terms>({ idleMs: USUAL_IDLE_MS });
