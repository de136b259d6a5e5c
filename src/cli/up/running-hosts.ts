import { ensureError, PserverError } from "../../protocol/errors.ts";

/** A host that runs in this process or in its own. */
export interface RunningHost {
  /** Settles when it has ended, with the reason unless it was stopped. */
  readonly stopped: Promise<PserverError | undefined>;
  stop(): Promise<void>;
}

/** The hosts that this command has started. */
export class RunningHosts {
  /** Settles when no host is left, with the reason of the last one. */
  readonly allGone: Promise<PserverError>;
  readonly #hosts = new Set<RunningHost>();
  readonly #onGone: (name: string, reason: PserverError | undefined) => void;
  #noneLeft: (reason: PserverError) => void = () => {};

  /** `onGone` is called for each host that ends by itself while others still run. */
  constructor(onGone: (name: string, reason: PserverError | undefined) => void) {
    this.#onGone = onGone;
    this.allGone = new Promise((resolve) => {
      this.#noneLeft = resolve;
    });
  }

  /** Watches a host. `name` is for messages. */
  add(name: string, host: RunningHost): void {
    this.#hosts.add(host);
    void host.stopped.then((reason) => {
      if (!this.#hosts.delete(host)) return;
      if (this.#hosts.size > 0) this.#onGone(name, reason);
      else this.#noneLeft(reason ?? new PserverError("NO_HOST", `${name} has ended`));
    });
  }

  /** Stops every host and waits for all; returns the errors. */
  async stop(): Promise<PserverError[]> {
    const hosts = [...this.#hosts];
    this.#hosts.clear();
    const results = await Promise.allSettled(hosts.map((host) => host.stop()));
    return results.flatMap((result) =>
      result.status === "rejected" ? [ensureError(result.reason)] : [],
    );
  }
}
