// Proves that a trainer which asks one thing as fast as it can, past its client, stops nobody: two others
// train, look and save meanwhile, and every call of theirs succeeds; the host keeps its leases; and the
// flooding trainer is told to wait, and for how long.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { jetstreamManager, type StreamAPI } from "@nats-io/jetstream";
import { connect as connectToBroker } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { bucketStream, JobSubjects } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, TEST_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";

const PROGRAM = testProgram("flooder");
const ROUNDS = 5;
/** Only a call that never gets its turn takes so long: the flood keeps a small machine busy by itself. */
const CALL = { timeoutMs: HANG_MS };
const SHARDS = 4;
/** Renewals are due each third of it. Where a flood keeps all processors busy, one may come some seconds late. */
const LEASE_MS = 15_000;

interface Told {
  readonly sent: number;
  readonly answered: number;
  readonly busy: number;
  readonly hinted: number;
}

/** A process that floods until it is ended. */
class Flooder implements AsyncDisposable {
  told: Told = { sent: 0, answered: 0, busy: 0, hinted: 0 };
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #closed: Promise<void>;

  constructor(job: TestJob, what: string) {
    const options = JSON.stringify({ url: job.broker.url, job: job.job, what });
    this.#child = spawn(process.execPath, [PROGRAM, options], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdin.on("error", () => undefined);
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.told = JSON.parse(line) as Told;
    });
    this.#closed = new Promise((resolve) => this.#child.once("close", () => resolve()));
  }

  /** Waits until it has been refused, so that it does flood. */
  async refused(): Promise<void> {
    await vi.waitFor(() => expect(this.told.busy).toBeGreaterThan(0), { timeout: HANG_MS });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#closed;
  }
}

/** The leases of the hosts and their shards in the bucket of a job. */
class HeldLeases {
  readonly #streams: StreamAPI;
  readonly #bucket: string;

  private constructor(streams: StreamAPI, bucket: string) {
    this.#streams = streams;
    this.#bucket = bucket;
  }

  /** Opens a connection of its own, which ends with the test. */
  static async open(job: TestJob): Promise<HeldLeases> {
    const connection = await connectToBroker({ servers: job.broker.url });
    onTestFinished(() => connection.close());
    const { streams } = await jetstreamManager(connection, { timeout: HANG_MS });
    return new HeldLeases(streams, new JobSubjects(job.job).leaseBucket());
  }

  /** The subject of each lease with the sequence number of its last renewal. */
  async renewals(): Promise<Map<string, number>> {
    const stream = bucketStream(this.#bucket);
    const renewals = new Map<string, number>();
    for (const holder of ["host", "shard"]) {
      const filter = `$KV.${this.#bucket}.${holder}.>`;
      const { state } = await this.#streams.info(stream, { subjects_filter: filter });
      for (const subject of Object.keys(state.subjects ?? {})) {
        const last = await this.#streams.getMessage(stream, { last_by_subj: subject });
        if (last !== null) renewals.set(subject, last.seq);
      }
    }
    return renewals;
  }

  /** Whether each of these leases has been renewed since. */
  async areRenewed(since: ReadonlyMap<string, number>): Promise<boolean> {
    const now = await this.renewals();
    return [...since].every(([subject, seq]) => (now.get(subject) ?? 0) > seq);
  }
}

async function train(client: Client, rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    const gradients = { w: new Float32Array(1_000).fill(-1), v: new Float32Array(10).fill(1) };
    await client.sendGrads(gradients, CALL);
    await client.getParams(["w", "v"], CALL);
    expect((await client.status(CALL)).state).toBe("ready");
    if (i % 5 === 0) expect(await client.listParams(CALL)).not.toHaveLength(0);
  }
}

test.each(["status", "outcome", "save", "create"])(
  "a flood of %s stops no other trainer and costs no lease",
  async (what) => {
    const modelDirectory = await mkdtemp(join(tmpdir(), "pserver-test-"));
    onTestFinished(() => rm(modelDirectory, { recursive: true, force: true }));
    const job = await TestJob.start({
      shards: SHARDS,
      leaseMs: LEASE_MS,
      workers: 1,
      modelDirectory,
    });
    onTestFinished(() => job.remove());
    const host = await job.host();
    const trainers = await Promise.all(["a", "b"].map((id) => job.trainer(id)));
    const [first] = trainers as [Client];
    await first.beginInit();
    await first.initParam("w", new Float32Array(1_000), { learningRate: 1 });
    await first.initParam("v", new Float32Array(10), { learningRate: 1 });
    await first.finishInit();

    const leases = await HeldLeases.open(job);
    const lines = host.lines.length;
    await using flooder = new Flooder(job, what);
    await flooder.refused();
    const held = await leases.renewals();
    expect(held.size).toBe(1 + SHARDS);
    let rounds = 0;
    do {
      await Promise.all(trainers.map((client) => train(client, ROUNDS)));
      rounds += ROUNDS;
    } while (!(await leases.areRenewed(held)));
    if (what === "save") await first.saveModel("honest.npz", CALL);
    expect((await first.pullFull("w")).data[0]).toBe(2 * rounds);
    // Whoever is told BUSY is told how long to wait.
    expect(flooder.told.hinted).toBe(flooder.told.busy);
    expect(host.lines.slice(lines)).toEqual([]);
  },
  TEST_MS,
);
