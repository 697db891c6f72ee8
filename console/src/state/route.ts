import { signal } from "@preact/signals";

/** Where the person is in the app. It stands behind the `#` of the address, which the server never sees. */
export type Route =
  | { at: "home" }
  | { at: "session"; session: string }
  | { at: "agent"; session: string; agent: string }
  | { at: "desktop"; session: string; desktop: string }
  | { at: "record"; session: string };

/** The route that an address names; what it does not know leads home. */
export function parse(hash: string): Route {
  const [session, kind, id] = hash.replace(/^#?\/?/, "").split("/").map(decode);
  if (session === undefined || session === "") return { at: "home" };
  if (kind === "agent" && id !== undefined) return { at: "agent", session, agent: id };
  if (kind === "desktop" && id !== undefined) return { at: "desktop", session, desktop: id };
  if (kind === "record") return { at: "record", session };
  return { at: "session", session };
}

/** The address of a route. */
export function href(route: Route): string {
  if (route.at === "home") return "#/";
  const session = encodeURIComponent(route.session);
  switch (route.at) {
    case "agent":
      return `#/${session}/agent/${encodeURIComponent(route.agent)}`;
    case "desktop":
      return `#/${session}/desktop/${encodeURIComponent(route.desktop)}`;
    case "record":
      return `#/${session}/record`;
    default:
      return `#/${session}`;
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where the person is. */
export const route = signal<Route>(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

/** Goes somewhere; the way back leads here. */
export function go(to: Route): void {
  location.hash = href(to);
}
