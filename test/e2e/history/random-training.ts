import { jetstream } from "@nats-io/jetstream";
import fc from "fast-check";
import type { Client } from "../../../src/client/index.ts";
import type { TestHost, TestJob } from "../../support/host.ts";
import { snapshotAll } from "../host/control.ts";
import { Archive } from "../host/journal-fold.ts";

/** What happens next in a training. */
export type Act =
  | { readonly kind: "gradients" | "rows" | "mix" | "set"; readonly seed: number }
  /** `repeat`: a record comes again, as one does whose acknowledgement was lost. */
  | { readonly kind: "snapshot" | "kill" | "repeat" }
  /** One of the trainers ends, and comes again in another session. */
  | { readonly kind: "rejoin"; readonly at: number };

const seed = fc.nat(1_000);

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("gradients"), seed }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom("rows", "mix", "set"), seed }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("snapshot", "repeat") }) },
);

/** Happens in every training. */
const ALWAYS: readonly Act[] = [
  ...Array.from({ length: 6 }, (_, i): Act => ({ kind: "gradients", seed: i })),
  { kind: "rows", seed: 1 },
  { kind: "set", seed: 2 },
  { kind: "repeat" },
  { kind: "snapshot" },
  { kind: "kill" },
  { kind: "kill" },
  { kind: "rejoin", at: 0 },
  { kind: "rejoin", at: 1 },
];

/** Trainings in which all that may happen does, in any order. */
export const trainings: fc.Arbitrary<readonly Act[]> = fc
  .array(act, { minLength: 4, maxLength: 8 })
  .chain((acts) => {
    const all = [...ALWAYS, ...acts];
    return fc.shuffledSubarray(all, { minLength: all.length });
  });

/** Elements of the small parameters, which are one block each. */
export const SMALL = { plain: 3_000, heavy: 5_000, counts: 16 } as const;

/** Shape of the parameter of several blocks, which takes gradients of rows. */
const EMBEDDING: readonly [number, number] = [1_100, 1_000];

/** The trainers of a job, and what they do. */
export class RandomTraining {
  readonly #job: TestJob;
  readonly #clients: Client[];

  private constructor(job: TestJob, clients: Client[]) {
    this.#job = job;
    this.#clients = clients;
  }

  /** Initializes the model: parameters of several optimizers, and one without. */
  static async begin(job: TestJob): Promise<RandomTraining> {
    const clients = [await job.trainer("a"), await job.trainer("b")];
    const [first] = clients as [Client, Client];
    await first.beginInit();
    const momentum = { name: "momentum", momentum: 0.9 } as const;
    const [rows, columns] = EMBEDDING;
    const embedding = new Float32Array(rows * columns).fill(0.1);
    await first.initParam("plain", new Float32Array(SMALL.plain).fill(0.5), { learningRate: 0.1 });
    await first.initParam("heavy", new Float32Array(SMALL.heavy).fill(1), {
      ...{ optimizer: momentum, learningRate: 0.01 },
    });
    await first.initParam(
      "embedding",
      { dtype: "float32", shape: [...EMBEDDING], data: embedding },
      { optimizer: "adam", learningRate: 0.001, sparse: true },
    );
    await first.initParam("counts", new BigInt64Array(SMALL.counts));
    await first.finishInit();
    return new RandomTraining(job, clients);
  }

  /** The first trainer. */
  get client(): Client {
    return this.#clients[0] as Client;
  }

  /** Does one thing after the other; `after` is called after each. */
  async run(acts: readonly Act[], after: () => Promise<void>): Promise<void> {
    for (const each of acts) {
      await this.#do(each);
      await after();
    }
  }

  async #do(each: Act): Promise<void> {
    const { client } = this;
    switch (each.kind) {
      case "gradients":
        return await this.#sendAll((at) => ({
          plain: wave(SMALL.plain, each.seed + at),
          heavy: wave(SMALL.heavy, each.seed - at),
        }));
      case "rows": {
        const [count, columns] = EMBEDDING;
        const rows = [0, 1, 2].map((i) => (each.seed * 7 + i * 400) % count);
        return await this.#sendAll((at) => ({
          embedding: { rows, values: wave(3 * columns, each.seed + at) },
          plain: wave(SMALL.plain, each.seed),
        }));
      }
      case "mix":
        return await client.pushFull("counts", new BigInt64Array(SMALL.counts).fill(3n), 2, 1);
      case "set":
        return await client.setParams({
          plain: wave(SMALL.plain, each.seed),
          heavy: wave(SMALL.heavy, each.seed),
        });
      case "repeat":
        return await repeatLast(this.#job);
      case "snapshot":
        return await snapshotAll(this.#job);
      case "kill":
        // Leases of trainers last: one that loses its own would leave the steps.
        await this.#job.crash(this.#job.hosts.at(-1) as TestHost);
        this.#job.spawnHost();
        return;
      case "rejoin": {
        await this.#clients[each.at]?.close();
        this.#clients[each.at] = await this.#job.trainer(["a", "b"][each.at] ?? "");
      }
    }
  }

  /** A gradient of each trainer, at the same time, so that steps close. */
  async #sendAll(of: (at: number) => Parameters<Client["sendGrads"]>[0]): Promise<void> {
    await Promise.all(this.#clients.map((client, at) => client.sendGrads(of(at))));
  }
}

function wave(count: number, by: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(i * (by + 1)));
}

/** Stores the last record of a shard that a trainer has sent once more. */
async function repeatLast({ broker, job }: TestJob): Promise<void> {
  await using archive = await Archive.open(broker.url, job);
  const sent = (await archive.records(0)).findLast(({ subject }) => subject.includes(".trainer."));
  if (sent === undefined) return;
  await jetstream(archive.connection).publish(sent.subject, sent.payload);
}
