import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client } from "../../../src/client/index.ts";
import { ArchiveSource } from "../../../src/history/archive/archive-source.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import type { HistoryPlace, HistorySource } from "../../../src/history/source.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { type Finished, type Running, run, start } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { digestOf, Observer, type PulledBlock } from "./pulled.ts";

const POLL_MS = 50;

const NO_ABORT = new AbortController().signal;

/** Bytes of the journal that hosts retain, and between two snapshots. */
export const RETAIN_BYTES = 1_500_000;
export const SNAPSHOT_BYTES = 300_000;

/** Elements of each parameter; a push of one is a record of 40 KB. */
const ELEMENTS = 10_000;

/** A job with little to retain, one trainer, and a directory for its archive. */
export class ArchivedJob {
  readonly job: TestJob;
  readonly client: Client;
  readonly home: string;
  readonly directory: string;

  private constructor(job: TestJob, client: Client, home: string) {
    this.job = job;
    this.client = client;
    this.home = home;
    this.directory = join(home, "archive");
  }

  static async start(options: Partial<HostOptions> = {}): Promise<ArchivedJob> {
    const sizes = { shards: 2, snapshotBytes: SNAPSHOT_BYTES, retainBytes: RETAIN_BYTES };
    const job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, ...sizes, ...options });
    await job.host();
    const client = await job.trainer("a");
    // Created one by one, they lie where the hashes of their names say: on both shards.
    for (const name of ["u", "v", "w", "x"]) {
      const values = new Float32Array(ELEMENTS).fill(0.1);
      const config = { learningRate: 0.01, optimizer: "adam" } as const;
      await client.createIfNotAlreadyCreated(name, values, config);
    }
    return new ArchivedJob(job, client, await mkdtemp(join(tmpdir(), "pserver-archive-")));
  }

  /** Where the history is; with `archive`, in the archive and the broker. */
  place(archive?: string): HistoryPlace {
    const connection = { servers: [this.job.broker.url], timeoutMs: HANG_MS };
    return { kind: "broker", connection, job: this.job.job, ...(archive && { archive }) };
  }

  /** What the broker holds. */
  async live(): Promise<HistorySource> {
    return await openHistory(this.place());
  }

  /** Pushes random gradients; each round adds 160 KB to the journals. */
  async train(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const gradient = (): Float32Array => Float32Array.from({ length: ELEMENTS }, Math.random);
      await this.client.sendGrads({ u: gradient(), v: gradient(), w: gradient(), x: gradient() });
    }
  }

  /** Starts an archiver in a process of its own. */
  archiver(...args: string[]): Running {
    return start(["archive", this.directory, ...args], { environment: this.environment });
  }

  /** Archives what is there now, and ends. */
  async archiveOnce(directory: string = this.directory): Promise<void> {
    const { code, stdout, stderr } = await this.pserver("archive", directory, "--once");
    expect(code, `${stdout}\n${stderr}`).toBe(0);
  }

  /** The history in the archive alone. */
  async alone(): Promise<HistorySource> {
    return await openHistory({ kind: "archive", archive: this.directory });
  }

  /** Runs a command to its end. */
  pserver(...args: string[]): Promise<Finished> {
    return run(args, { environment: this.environment });
  }

  /** Waits until the archive has every record that the broker has. */
  async untilArchived(): Promise<void> {
    const live = await this.live();
    try {
      for (const deadline = performance.now() + HANG_MS; ; await delay(POLL_MS)) {
        if (await this.#hasAll(live)) return;
        if (performance.now() > deadline) throw new Error("the archiver does not catch up");
      }
    } finally {
      await live.close();
    }
  }

  async remove(): Promise<void> {
    await this.job.remove();
    await rm(this.home, { recursive: true });
  }

  get environment(): Record<string, string> {
    return { PSERVER_URL: this.job.broker.url, PSERVER_JOB: this.job.job };
  }

  async #hasAll(live: HistorySource): Promise<boolean> {
    let archive: ArchiveSource;
    try {
      archive = await ArchiveSource.open(this.directory);
    } catch {
      return false;
    }
    for (let shard = 0; shard < live.shards; shard++) {
      const last = (await live.shard(shard).spans()).at(-1);
      const archived = (await archive.shard(shard).spans()).at(-1);
      if (archived?.generation !== last?.generation || archived?.lastSeq !== last?.lastSeq) {
        return false;
      }
    }
    return true;
  }
}

/** The job of each test of a file: {@link ArchivedJob.start} makes it, and it ends with the test. */
export function archivedJobOfEachTest(): {
  start(options?: Partial<HostOptions>): Promise<ArchivedJob>;
} {
  let current: ArchivedJob | undefined;
  beforeEach(() => {
    current = undefined;
  });
  afterEach(async () => {
    await current?.remove();
  });
  return {
    start: async (options) => {
      current = await ArchivedJob.start(options);
      return current;
    },
  };
}

/** Pulls all parameters now. */
export async function pullAll({ job, client }: ArchivedJob): Promise<PulledBlock[]> {
  const observer = await Observer.open(job);
  try {
    const infos = await client.listParams();
    return (await Promise.all(infos.map((info) => observer.pull(info)))).flat();
  } finally {
    await observer.close();
  }
}

/** Compares pulled blocks with the replays to their positions. */
export async function expectReplayed(
  source: HistorySource,
  pulled: readonly PulledBlock[],
): Promise<void> {
  const subjects = new JobSubjects(source.job);
  for (const { shard, position, parameter, index, version, digest } of pulled) {
    const replayed = await replayShard(source.shard(shard), position, {
      subjects,
      signal: NO_ABORT,
    });
    const block = replayed.block(parameter, index);
    expect(block?.version).toBe(version);
    expect(digestOf(block?.values() ?? Buffer.of()), `${parameter} at ${position.seq}`).toBe(
      digest,
    );
  }
}
