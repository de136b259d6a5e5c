/**
 * A host as a process of its own, for tests that kill it. Its options are the first argument, as
 * JSON; what happens in it goes to standard output, a JSON object a line. SIGTERM closes it; the
 * end of its input ends it at once, so that it never outlives the test that started it.
 */
import type { HostOptions } from "../../../src/actors/host/host.ts";
import { startHost } from "../../../src/actors/host/start-host.ts";
import { ensureError } from "../../../src/protocol/index.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as HostOptions;

function tell(line: unknown): void {
  process.stdout.write(
    `${JSON.stringify(line, (_key, value: unknown) =>
      value instanceof Error ? ensureError(value).toWire() : value,
    )}\n`,
  );
}

process.stdin.resume().once("end", () => process.exit(3));

try {
  const host = await startHost({ ...options, onEvent: tell });
  process.once("SIGTERM", () => void host.close());
  tell({ type: "started", id: host.id, settings: host.settings });
  const reason = await host.stopped;
  tell(reason === undefined ? { type: "stopped" } : { type: "stopped", error: reason });
  process.exitCode = reason === undefined ? 0 : 1;
} catch (error) {
  tell({ type: "refused", error: ensureError(error) });
  process.exitCode = 1;
}
process.stdin.destroy();
