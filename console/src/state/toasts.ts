import { signal } from "@preact/signals";

/** Something that the person is told in passing. */
export interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const MOST = 4;
const SHOWN_MS = 8_000;
let nextId = 1;

export const toasts = signal<readonly Toast[]>([]);

/** Tells the person something that happened. */
export function say(text: string): void {
  add({ id: nextId++, text, bad: false });
}

/** Tells the person that something did not happen, and why. */
export function complain(thrown: unknown): void {
  add({ id: nextId++, text: thrown instanceof Error ? thrown.message : String(thrown), bad: true });
}

/** Takes it away. */
export function dismiss(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

function add(toast: Toast): void {
  toasts.value = [...toasts.peek().slice(1 - MOST), toast];
  // What went wrong stays until it is put away.
  if (!toast.bad) setTimeout(() => dismiss(toast.id), SHOWN_MS);
}
