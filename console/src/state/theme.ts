import { effect, signal } from "@preact/signals";

/** Which colours the page has; `auto` follows the system. */
export type Theme = "auto" | "light" | "dark";

const KEY = "handover-theme";
const ORDER: readonly Theme[] = ["auto", "light", "dark"];

/** The colours that the person chose. */
export const theme = signal<Theme>(stored());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
});

/** The next choice in turn. */
export function turnTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.peek()) + 1) % ORDER.length] ?? "auto";
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return ORDER.find((one) => one === value) ?? "auto";
  } catch {
    return "auto";
  }
}
