// Obeys the tests in Rust: JSON commands on standard input, one a line, each answered on standard output.
import { createInterface } from "node:readline";

/**
 * Says {"id": 0, "result": first}, then begins each {"id", "do", …} at once by calling `acts[do]` with it, and
 * answers with {"id", "result"} or {"id", "error"}. Ends with its input.
 */
export async function obey(acts, first) {
  const say = (answer) => console.log(JSON.stringify(answer));
  say({ id: 0, result: first });
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    Promise.resolve(command)
      .then((command) => acts[command.do](command))
      .then(
        (result) => say({ id: command.id, result: result ?? null }),
        (error) => say({ id: command.id, error: String(error) }),
      );
  }
}
