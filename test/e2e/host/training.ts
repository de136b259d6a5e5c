import { expect } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { bytesOf } from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { Archive } from "./journal-fold.ts";

/** Counters that one call raises: several on each shard, so that the call is a batch for each. */
const TOGETHER = Array.from({ length: 16 }, (_, i) => `counted-together-${i}`);

/** Parameters on all shards: a counter of each trainer's updates, and floats. */
export async function initialize(client: Client, trainers: number): Promise<void> {
  expect(await client.beginInit()).toBe(true);
  await Promise.all([
    ...Array.from({ length: 8 }, (_, i) =>
      client.initParam(`count-${i}`, new BigInt64Array(trainers)),
    ),
    ...TOGETHER.map((name) =>
      client.initParam(name, new BigInt64Array(trainers), { optimizer: "none" }),
    ),
    ...Array.from({ length: 4 }, (_, i) =>
      client.initParam(`float-${i}`, new Float32Array(1_000).fill(0.1), { learningRate: 0.01 }),
    ),
  ]);
  await client.finishInit();
}

/** Pushes until `ended`; gives how often each counter was raised, all acknowledged. */
export async function train(
  client: Client,
  at: number,
  trainers: number,
  ended: () => boolean,
): Promise<number> {
  let rounds = 0;
  const one = new BigInt64Array(trainers);
  one[at] = 1n;
  while (!ended()) {
    const gradient = Float32Array.from({ length: 1_000 }, (_, i) =>
      Math.sin(i * (at + 1) + rounds),
    );
    await Promise.all([
      ...Array.from({ length: 8 }, (_, i) => client.pushFull(`count-${i}`, one, 1, 1)),
      client.sendGrads({
        ...Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`float-${i}`, gradient])),
        ...Object.fromEntries(TOGETHER.map((name) => [name, one])),
      }),
    ]);
    rounds++;
  }
  return rounds;
}

/**
 * Every value a trainer pulls is that of a fold of the journal, in which there are batches, and the counters
 * are right.
 */
export async function checkValues(
  job: TestJob,
  client: Client,
  rounds: readonly number[],
): Promise<void> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const shards = await Promise.all([0, 1, 2, 3].map((shard) => archive.fold(shard)));
  const records = (await Promise.all([0, 1, 2, 3].map((shard) => archive.records(shard)))).flat();
  expect(records.some(({ subject }) => subject.endsWith(".batch"))).toBe(true);
  const infos = await client.listParams();
  const pulled = await client.getParams(infos.map(({ name }) => name));
  for (const [i, { name, data }] of pulled.entries()) {
    if (name.startsWith("count")) expect([...data], name).toEqual(rounds.map(BigInt));
    const shard = infos[i]?.layout.firstShard ?? -1;
    const folded = shards[shard]?.block(name, 0)?.values();
    expect(Buffer.compare(folded ?? Buffer.of(), bytesOf(data)), name).toBe(0);
  }
}

/** Trains with several clients until {@link Training.end}. */
export class Training {
  readonly #clients: readonly Client[];
  readonly #rounds: Promise<number[]>;
  #ended = false;

  constructor(clients: readonly Client[]) {
    this.#clients = clients;
    const all = clients.map((client, at) => train(client, at, clients.length, () => this.#ended));
    this.#rounds = Promise.all(all);
    // Its failure is the test's, at the end or in between.
    this.#rounds.catch(() => undefined);
  }

  /** Waits until every shard has applied a few more updates of the first trainer. */
  async progress(): Promise<void> {
    const [client] = this.#clients;
    if (client === undefined) return;
    const count = async (name: string): Promise<bigint> =>
      BigInt((await client.pullFull(name)).data[0] ?? 0);
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const before = await count(`count-${i}`);
        while ((await count(`count-${i}`)) < before + 2n) await client.pullFull(`float-${i % 4}`);
      }),
    );
  }

  /** Ends it; the rounds of each trainer, all acknowledged. @throws the first error of any call. */
  async end(): Promise<number[]> {
    this.#ended = true;
    return await this.#rounds;
  }
}
