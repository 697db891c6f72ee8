import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 760px)");

/** Whether the page is as narrow as a phone: then one thing is shown at a time. The style sheet has the same bound. */
export const narrow = signal(query.matches);

query.addEventListener("change", () => {
  narrow.value = query.matches;
});
