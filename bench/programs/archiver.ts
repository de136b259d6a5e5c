import { constants, setPriority } from "node:os";
import { JobArchiver } from "../../src/history/archive/job-archiver.ts";
import { BrokerHistory } from "../../src/history/broker-history.ts";
import { serveAgent } from "../agent.ts";

/** Where an archiver follows which job. */
export interface Archiving {
  readonly url: string;
  readonly job: string;
  readonly directory: string;
}

const GRACE_MS = 60_000;
const PAUSE_MS = 1_000;
const TIMEOUT_MS = 10_000;

/** An archiver as `pserver archive` runs it, which can be made to pause. */
const commands = {
  async open({ url, job, directory }: Archiving): Promise<void> {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const reach = { servers: [url], timeoutMs: TIMEOUT_MS };
    archiver = await JobArchiver.open({
      source: await BrokerHistory.open(reach, job, "archive"),
      ...{ directory, graceMs: GRACE_MS, lock: () => Promise.resolve() },
      onDamaged: (error) => console.error(`archiver: ${error.message}`),
      onUnregistered: (error) => console.error(`archiver: ${error.message}`),
    });
  },

  /** Copies what is there, and what comes from now on. */
  async follow(): Promise<void> {
    await archiver?.copy(signal);
    following = setInterval(() => {
      copying ??= copy();
    }, PAUSE_MS);
  },

  /** Copies nothing until {@link commands.follow}. */
  async pause(): Promise<void> {
    clearInterval(following);
    await copying;
  },

  async close(): Promise<void> {
    await archiver?.end();
  },
};

export type BenchArchiver = typeof commands;

const { signal } = new AbortController();
let archiver: JobArchiver | undefined;
let following: NodeJS.Timeout | undefined;
let copying: Promise<void> | undefined;

async function copy(): Promise<void> {
  await archiver?.copy(signal);
  copying = undefined;
}

serveAgent(commands);
