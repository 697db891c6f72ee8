/**
 * A clock that goes on beating while the page is hidden: browsers slow the timers of hidden pages down to once a
 * minute, but not those of a worker. It is told how often to beat, in milliseconds.
 */

let timer: ReturnType<typeof setInterval> | undefined;

addEventListener("message", (message: MessageEvent<number>) => {
  clearInterval(timer);
  timer = setInterval(() => postMessage(null), message.data);
});
