import type { JSX } from "preact";

import { clean } from "../model/text.ts";
import { dismiss, toasts } from "../state/toasts.ts";

/** What is told in passing. */
export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite" data-testid="toasts">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.bad ? "toast bad" : "toast"}>
          <span>{clean(toast.text, 1_000)}</span>
          <button type="button" class="quiet" onClick={() => dismiss(toast.id)} aria-label="Put away">
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
