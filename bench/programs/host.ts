import type { Host, HostOptions } from "../../src/actors/host/host.ts";
import { startHost } from "../../src/actors/host/start-host.ts";
import { serveAgent } from "../agent.ts";

/** A host with one worker, as the product starts it. */
const commands = {
  async open(options: Omit<HostOptions, "onEvent">): Promise<void> {
    const failed: string[] = [];
    host = await startHost({
      ...options,
      onEvent: (event) => {
        if (!("error" in event)) return;
        failed.push(`${event.type}: ${event.error.message}`);
        console.error(`host: ${failed.at(-1)}`);
      },
    });
    // A shard that cannot be served would make the first call wait until its deadline.
    if (failed.length > 0) throw new Error(failed[0]);
  },

  async close(): Promise<void> {
    await host?.close();
  },
};

export type BenchHost = typeof commands;

let host: Host | undefined;

serveAgent(commands);
