import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  build: {
    // noVNC awaits at its top level, and so wants a browser of 2022 or newer.
    target: "es2022",
    outDir: "dist",
    emptyOutDir: true,
    // The content security policy allows files of this server only: nothing is put in as a data URL.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  worker: { format: "es" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
