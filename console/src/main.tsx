import { options, render } from "preact";

import { watchNeeds } from "./state/alerts.ts";
import { run } from "./state/clock.ts";
import "./state/theme.ts";
import { App } from "./view/App.tsx";

/** A page that is covered or hidden gets no frames, and still keeps up, in milliseconds. */
const LATEST_MS = 100;

// What happens between two frames is drawn once.
options.debounceRendering = (draw) => {
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer);
    draw();
  });
  const timer = setTimeout(() => {
    cancelAnimationFrame(frame);
    draw();
  }, LATEST_MS);
};

run();
watchNeeds();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
