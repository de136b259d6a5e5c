// Proves that what a job reserves at the broker holds what its streams can take: that the limits of all of them fit
// into the space that is looked for, that the largest entries fit into their buckets, and that limits rise with what
// is declared and never fall. The broker's streams are a table of limits.

import { JetStreamApiError } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import {
  configBytesOf,
  entriesBytesFor,
  findJournalBytes,
  JobSpace,
  LEASES_BYTES,
  snapshotBytesFor,
  tapeBytesBeside,
} from "../../../src/actors/job/storage-plan.ts";
import { encodeEntry } from "../../../src/actors/journal/kv-bucket.ts";
import { parameterKey, trainerKey } from "../../../src/actors/lifecycle/lock.ts";
import { type Parameter, toParameterEntry } from "../../../src/actors/lifecycle/parameter.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import {
  JobSubjects,
  LIVE_SESSIONS_MAX,
  NAME_BYTES_MAX,
  RANK_MAX,
  SHARDS_MAX,
} from "../../../src/protocol/index.ts";

const MIB = 1024 ** 2;
const SUBJECTS = new JobSubjects("j".repeat(40));
const NOTHING = { parameters: 0, heldBytes: 0, configBytes: 0 };
const BUCKET = `KV_${SUBJECTS.bucket()}`;
const LIMITS = { journalBytesMax: 16 * MIB, shards: 2 };

/** What nats-server adds to the subject and payload of a message without headers. */
const MESSAGE_BYTES = 30;

function storedBytes(key: string, value: object): number {
  return (
    `$KV.${SUBJECTS.leaseBucket()}.${key}`.length + encodeEntry(key, value).length + MESSAGE_BYTES
  );
}

interface StreamLimit {
  readonly name: string;
  readonly max_bytes: number;
  readonly storage?: string;
}

/** A broker that has promised so many bytes at most. */
class Limits {
  readonly limits: Map<string, number> = new Map();
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  readonly streams = {
    info: (name: string) => {
      const bytes = this.limits.get(name);
      if (bytes !== undefined) return Promise.resolve({ config: { max_bytes: bytes } });
      return Promise.reject(
        new JetStreamApiError({ code: 404, err_code: 10059, description: "stream not found" }),
      );
    },
    update: (name: string, { max_bytes: bytes }: { max_bytes: number }) =>
      this.streams.add({ name, max_bytes: bytes }),
    add: ({ name, max_bytes: bytes, storage }: StreamLimit) => {
      const others = [...this.limits].filter(([each]) => each !== name);
      const sum = others.reduce((all, [, each]) => all + each, bytes);
      const refused = { code: 500, err_code: 10047, description: "insufficient storage" };
      if (storage !== "memory" && sum > this.#bytesMax)
        return Promise.reject(new JetStreamApiError(refused));
      this.limits.set(name, bytes);
      return Promise.resolve();
    },
    delete: (name: string) => Promise.resolve(this.limits.delete(name)),
  };
}

/** The space of a job without parameters on a broker. */
function space(broker: Limits): JobSpace {
  broker.limits.set(BUCKET, entriesBytesFor(NOTHING));
  broker.limits.set(SUBJECTS.snapshotStream(), snapshotBytesFor(LIMITS, 0));
  return new JobSpace({
    manager: broker as unknown as ConstructorParameters<typeof JobSpace>[0]["manager"],
    subjects: SUBJECTS,
    limits: LIMITS,
  });
}

describe("a job whose journals were fitted to the broker", () => {
  test.each([
    [500, 16],
    [700, 16],
    [1_000, 32],
    [3_000, 64],
  ])("of %d MiB finds place for all its streams there", async (storeMib, journalMib) => {
    const broker = new Limits(storeMib * MIB);
    const manager = broker as unknown as Parameters<typeof findJournalBytes>[0];
    // The job's own bucket is made first.
    await broker.streams.add({ name: "entries", max_bytes: entriesBytesFor(NOTHING) });
    const journalBytesMax = await findJournalBytes(manager, SUBJECTS, "file", 16);
    expect(journalBytesMax).toBe(journalMib * MIB);
    const limits = { journalBytesMax, shards: 16 };
    for (let shard = 0; shard < 16; shard++)
      await broker.streams.add({ name: `${shard}`, max_bytes: journalBytesMax });
    await broker.streams.add({ name: "tape", max_bytes: tapeBytesBeside(limits) });
    await broker.streams.add({ name: "snapshots", max_bytes: snapshotBytesFor(limits, 0) });
    await broker.streams.add({ name: "leases", max_bytes: LEASES_BYTES });
  });

  test("in memory finds place for the rest on file, or is not made", async () => {
    const broker = new Limits(100 * MIB);
    const manager = broker as unknown as Parameters<typeof findJournalBytes>[0];
    expect(await findJournalBytes(manager, SUBJECTS, "memory", 2)).toBe(64 * MIB);
    await expect(findJournalBytes(manager, SUBJECTS, "memory", 16)).rejects.toMatchObject({
      code: "NO_SPACE",
    });
  });
});

describe("the entries of", () => {
  test("as many parameters as there may be, the largest that there can be, fit", () => {
    const name = "\u0001".repeat(Math.floor(NAME_BYTES_MAX / 3));
    const entry = {
      declaration: {
        name,
        dtype: "float32",
        shape: [2 ** 33, ...Array.from({ length: RANK_MAX - 1 }, () => 1)],
        config: {},
      },
      layout: {
        elements: 2 ** 33,
        blockElements: 2 ** 33,
        blocks: 1,
        firstShard: 255,
        shards: 256,
      },
      ...{ blocksMax: 2 ** 18, jobEpoch: 2 ** 40, revision: 0 },
      lifecycle: {
        state: "initializing",
        context: {
          ...{ epoch: 2 ** 40, trainer: "t".repeat(64), session: 2 ** 40, sealed: 2 ** 40 },
          ...{ revised: 2 ** 40, at: [{ shard: 255, generation: 1_000_000, seq: 2 ** 50 }] },
        },
      },
    } as unknown as Parameter;
    const one = storedBytes(parameterKey(name), toParameterEntry(entry) as object);
    const [parameters, heldBytes] = [65_536, 1024 ** 4];
    // A smallest message holds a block of 192 KiB; an entry names a shard once.
    const ends =
      (heldBytes / (192 * 1024)) * '{"shard":255,"generation":1000000,"seq":1e15},'.length;
    const config = toConfig({
      learningRate: {
        schedule: "step",
        table: [
          [0, 0.1],
          [2, 0.2],
        ],
      },
    });
    const configBytes = parameters * JSON.stringify(config).length;
    const all = parameters * one + configBytes + ends;
    expect(all).toBeLessThan(entriesBytesFor({ parameters, heldBytes, configBytes }));
    const empty = entriesBytesFor(NOTHING);
    expect(empty + one).toBeLessThan(entriesBytesFor({ ...NOTHING, parameters: 1 }));
    expect(configBytesOf(config)).toBe(JSON.stringify(config).length);
  });

  test("as many trainers as may be joined fit, and their leases, with those of all shards", () => {
    const [session, exits] = [2 ** 40, 2 ** 40];
    const key = trainerKey("t".repeat(64));
    const entry = { format: 1, session, token: "x".repeat(64), ended: false, exits };
    const trainers = LIVE_SESSIONS_MAX * storedBytes(key, entry);
    expect(trainers).toBeLessThan(entriesBytesFor(NOTHING) - MIB);
    const lease = { owner: `session ${session}`, session, host: "h".repeat(64) };
    const leases = LIVE_SESSIONS_MAX * storedBytes(key, lease) + SHARDS_MAX * 2 * 1024;
    expect(leases).toBeLessThan(LEASES_BYTES);
  });
});

describe("what is declared", () => {
  test("raises the limits of entries and snapshots, and less never lowers them", async () => {
    const broker = new Limits(1_000 * MIB);
    const own = space(broker);
    const declared = { parameters: 100, heldBytes: 10 * MIB, configBytes: MIB };
    await own.reserve(declared);
    const raised = new Map([
      [BUCKET, entriesBytesFor(declared)],
      [SUBJECTS.snapshotStream(), snapshotBytesFor(LIMITS, 10 * MIB)],
    ]);
    expect(broker.limits).toEqual(raised);
    await own.reserve({ ...declared, parameters: 99, heldBytes: 9 * MIB });
    expect(broker.limits).toEqual(raised);
  });

  test("is reserved one after the other: the limit that comes last is the highest", async () => {
    const broker = new Limits(1_000 * MIB);
    const own = space(broker);
    await Promise.all([20, 10].map((mib) => own.reserve({ ...NOTHING, heldBytes: mib * MIB })));
    expect(broker.limits.get(SUBJECTS.snapshotStream())).toBe(snapshotBytesFor(LIMITS, 20 * MIB));
  });

  test("is refused where the broker has promised its space; a later reservation is not", async () => {
    const broker = new Limits(60 * MIB);
    const own = space(broker);
    const [many, few] = [20, 10].map((mib) =>
      own.reserve({ ...NOTHING, parameters: 3, heldBytes: mib * MIB }),
    );
    await expect(many).rejects.toMatchObject({
      code: "NO_SPACE",
      message: expect.stringMatching(/3 parameters with 20971520 bytes .* max_file/),
    });
    await few;
    expect(broker.limits.get(SUBJECTS.snapshotStream())).toBe(snapshotBytesFor(LIMITS, 10 * MIB));
  });
});
