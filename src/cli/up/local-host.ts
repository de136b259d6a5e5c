import type { Host, HostOptions } from "../../actors/host/host.ts";
import { ensureError, type PserverError } from "../../protocol/errors.ts";
import type { StartedHost } from "./kept-host.ts";

/**
 * Starts a host in this process. Its code is loaded here, so that other commands start faster. `stop`
 * does not wait for a host that is still starting, which may hang: this process ends next.
 */
export function startLocalHost(options: HostOptions): StartedHost {
  let running: Host | undefined;
  let isStopping = false;
  const start = async (): Promise<Host> => {
    const { startHost } = await import("../../actors/host/host.ts");
    running = await startHost(options);
    if (isStopping) await running.close();
    return running;
  };
  const starting = start();
  const ready = starting.then(({ id }) => id);
  // A caller that stops a host while it starts may not wait for `ready`.
  ready.catch(() => {});
  const stopped = starting.then(
    (host) => host.stopped,
    (error): PserverError => ensureError(error),
  );
  const stop = async (): Promise<void> => {
    isStopping = true;
    await running?.close();
  };
  return { ready, stopped, stop };
}
