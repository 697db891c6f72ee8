/** Calls `beat` every so many milliseconds, in a hidden page too, until the function that it answers is called. */
export function everyBeat(ms: number, beat: () => void): () => void {
  const worker = new Worker(new URL("./heartbeat.ts", import.meta.url), { type: "module" });
  worker.onmessage = beat;
  // Where there is no worker, a timer is better than nothing.
  let timer: ReturnType<typeof setInterval> | undefined;
  worker.onerror = () => {
    timer ??= setInterval(beat, ms);
  };
  worker.postMessage(ms);
  return () => {
    worker.terminate();
    clearInterval(timer);
  };
}
