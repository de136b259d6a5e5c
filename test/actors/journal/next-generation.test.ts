// Proves that a shard goes on under the next generation whatever write of it a crash follows: who repeats it and the
// host that takes the shard over come to the same state, one journal takes records, and each record that a trainer
// stored meanwhile is in it or named as lost. And that a run that was overtaken at any write changes nothing any
// more. Snapshots and streams are in memory; the process that dies ends with an exception at that write.
import { beforeEach, describe, expect, test } from "vitest";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { Journal, JournalInfo } from "../../../src/actors/journal/journal.ts";
import { ObservedEnd } from "../../../src/actors/journal/journal-check.ts";
import {
  type ContinuedShard,
  completeContinuation,
  continueShard,
  finalFallbacks,
  journalLosses,
} from "../../../src/actors/journal/next-generation.ts";
import { loadSnapshot } from "../../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import {
  type ManifestHeader,
  Snapshotter,
  type SnapshotterDeps,
} from "../../../src/actors/journal/snapshots/snapshotter.ts";
import { OwnedJournal } from "../../../src/actors/owner/owned-journal.ts";
import { recoverShard } from "../../../src/actors/owner/recover-shard.ts";
import { ShardSnapshots } from "../../../src/actors/owner/shard-snapshots.ts";
import { type Position, PserverError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

/**
 * Generation that is abandoned, its last record, and the one that the shard goes on from: the rules, and a declaration
 * and an `init` of each block.
 */
const OLD = 2;
const LAST = 9;
const AT: Position = { generation: OLD, seq: 5 };

interface MemoryStream {
  readonly created: string;
  lastSeq: number;
  takesRecords: boolean;
}

/** The journals of a shard, by generation, and records that trainers store between the writes of others. */
class MemoryJournals {
  readonly shard = SHARD;
  readonly rules = 1;
  readonly isReplicated = false;
  readonly streams = new Map<number, MemoryStream>();
  /** Every record that was acknowledged. */
  readonly stored: Position[] = [];
  noSpace = false;
  #made = 0;

  get journal(): Journal {
    return this as unknown as Journal;
  }

  stream(generation: number): string {
    return `journal ${generation}`;
  }

  /** Stores a trainer's record, if a stream takes it. */
  append(): void {
    for (const [generation, stream] of this.streams) {
      if (!stream.takesRecords) continue;
      stream.lastSeq += 1;
      this.stored.push({ generation, seq: stream.lastSeq });
    }
  }

  async info(generation: number): Promise<JournalInfo | undefined> {
    const stream = this.streams.get(generation);
    const nothing = { firstSeq: 1, missing: [], lost: undefined, bytes: 1, bytesMax: 0 };
    return stream && { ...nothing, created: stream.created, lastSeq: stream.lastSeq };
  }

  async record(generation: number, seq: number): Promise<JournalRecord> {
    const written = generation === OLD ? writer.records[seq - 1] : undefined;
    return written ?? { seq, subject: "", payload: new Uint8Array(0) };
  }

  async setAside(generations: readonly number[]): Promise<Map<number, JournalInfo>> {
    const left = new Map<number, JournalInfo>();
    for (const generation of [...generations].sort((a, b) => b - a)) {
      const [info, stream] = [await this.info(generation), this.streams.get(generation)];
      if (info === undefined || stream === undefined) continue;
      if (left.size === 0) stream.takesRecords = false;
      else this.streams.delete(generation);
      left.set(generation, info);
    }
    return left;
  }

  async remove(generations: readonly number[]): Promise<void> {
    for (const generation of generations) if (this.streams.delete(generation)) this.noSpace = false;
  }

  async open(generation: number): Promise<JournalInfo> {
    const isTaken = [...this.streams].some(
      ([each, { takesRecords }]) => takesRecords && each !== generation,
    );
    if (isTaken) throw new PserverError("INTERNAL", "subjects overlap with an existing stream");
    if (this.noSpace) throw new PserverError("NO_SPACE", "insufficient storage resources");
    const made = { created: `stream ${++this.#made}`, lastSeq: 0, takesRecords: true };
    const stream = this.streams.get(generation) ?? made;
    stream.takesRecords = true;
    this.streams.set(generation, stream);
    return (await this.info(generation)) as JournalInfo;
  }

  async purgeBelow(): Promise<void> {}
}

/** Called before and after each write of a run; it ends the run by throwing. */
type AtWrite = (write: number, when: "before" | "after") => Promise<void>;

const CRASH = new PserverError("INTERNAL", "the process was killed");

let snapshots: MemorySnapshots;
let journals: MemoryJournals;
let writer: JournalWriter;

function folded(seq: number): Shard {
  const shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  for (const record of writer.records.slice(0, seq)) shard.apply(record);
  return shard;
}

beforeEach(async () => {
  [snapshots, journals, writer] = [
    new MemorySnapshots(),
    new MemoryJournals(),
    new JournalWriter(),
  ];
  writer.host({ verb: "rules", rules: 1 });
  for (const parameter of ["a", "b", "c", "d"]) writer.init(Float32Array.of(1, 2), { parameter });
  await journals.open(OLD);
  for (let seq = 1; seq <= LAST; seq++) journals.append();
  const header: ManifestHeader = {
    ...{ term: 7, host: "h", owner: "old", generation: OLD },
    ...{ created: (await journals.info(OLD))?.created ?? "", fallbacks: [] },
  };
  await snapshotter(snapshots).cut(
    folded(LAST),
    () => header,
    () => 0,
    () => undefined,
  );
});

function snapshotter(store: SnapshotterDeps["store"]): Snapshotter {
  const budget = new SnapshotBudget(new BufferPool());
  const place = { store, subjects: SUBJECTS, shard: SHARD, partBytesMax: 10_000, budget };
  return new Snapshotter({ ...place, stored: new Map(), onProgress: () => undefined });
}

/**
 * Rewinds the shard to {@link AT}, as its callers do: from the newest manifest, unless that is done and it is not to be
 * repeated.
 */
async function run(
  owner: string,
  atWrite: AtWrite = async () => undefined,
  storage: "file" | "memory" = "file",
  isRepeated = false,
): Promise<ContinuedShard | undefined> {
  let writes = 0;
  const write = async <Result>(effect: () => Promise<Result>): Promise<Result> => {
    const number = ++writes;
    journals.append();
    await atWrite(number, "before");
    const result = await effect();
    await atWrite(number, "after");
    return result;
  };
  const newest = await snapshots.lastManifest();
  const { term = 0, generation = 0, created = "", fallbacks = [] } = newest?.manifest ?? {};
  if (generation > OLD && !isRepeated) return undefined;
  const { journal } = journals;
  const lastSeq = generation === OLD ? LAST : ((await journal.info(generation))?.lastSeq ?? 0);
  const known = { generation, fallbacks: await finalFallbacks(journal, { created, fallbacks }) };
  return await continueShard(
    {
      ...{ shard: SHARD, subjects: SUBJECTS, storage, partBytesMax: 10_000 },
      store: {
        publish: (subject, bytes) => write(() => snapshots.publish(subject, bytes)),
        commit: (manifest, previousSeq) => write(() => snapshots.commit(manifest, previousSeq)),
        requireRoom: () => snapshots.requireRoom(),
        remove: (sequences) => snapshots.remove(sequences),
      },
      journal: {
        rules: 1,
        setAside: (generations) => write(() => journal.setAside(generations)),
        open: (opened, rules) => write(() => journal.open(opened, rules)),
        remove: (generations) => write(() => journal.remove(generations)),
      },
    },
    {
      ...{
        shard: folded(AT.seq),
        stored: new Map(),
        host: "h",
        owner,
        generation,
        keepsPast: true,
      },
      replaced: { seq: newest?.seq ?? 0, term },
      fallbacks: journalLosses(AT, known, { generation, lastSeq }),
    },
  );
}

/** Takes the shard over as a host does, and looks where its journal continues. */
async function takeOver(): Promise<void> {
  const [{ store }, { journal }] = [snapshots, journals];
  const watermarks = { read: () => Promise.resolve(undefined) };
  const place = {
    subjects: SUBJECTS,
    shard: SHARD,
    host: "next",
    owner: "next",
    journal,
    watermarks,
  };
  const recovered = await recoverShard({ ...place, store, reserve: () => undefined });
  const owned = new OwnedJournal({
    ...{ ...place, shard: recovered.shard, storage: "file", journalEnd: new ObservedEnd(SHARD) },
    snapshots: new ShardSnapshots(
      {
        ...{ ...place, store },
        worker: {
          subjects: SUBJECTS,
          snapshotBudget: new SnapshotBudget(new BufferPool()),
          settings: { partBytesMax: 10_000, snapshotBytes: 1e9, retainBytes: 0, olderBytesMax: 0 },
          archivers: { copied: () => Promise.resolve([]) },
        },
      },
      { recovered, kept: await store.manifests() },
      {
        onSnapshotMade: () => undefined,
        onSnapshotFailed: (error) => expect.unreachable(error.message),
        onArchiverBehind: (error) => expect.unreachable(error.message),
        onDeposed: (error) => expect.unreachable(error.message),
        onProgress: () => undefined,
      },
    ),
    onReplaced: () => undefined,
    onFellBack: () => undefined,
    onReplicaDamaged: () => undefined,
    onGapRemains: () => undefined,
  });
  await owned.locate();
}

/** The shard goes on from {@link AT} in one journal, and says what became of each record. */
async function expectRewound(): Promise<void> {
  const newest = await snapshots.lastManifest();
  if (newest === undefined) throw new Error("no manifest");
  const { generation, created, past } = newest.manifest;
  expect([generation, past]).toEqual([OLD + 1, OLD]);
  expect((await journals.info(generation))?.created).toBe(created);
  const taking = [...journals.streams].filter(([, { takesRecords }]) => takesRecords);
  expect(taking.map(([each]) => each)).toEqual([generation]);
  const place = { subjects: SUBJECTS, shard: SHARD, store: snapshots };
  const wanted = folded(AT.seq);
  wanted.restartJournal();
  expect((await loadSnapshot(place, newest)).shard.digest()).toBe(wanted.digest());
  expect(unknownRecords(newest.manifest)).toEqual([]);
}

/** The records that trainers stored and that a manifest neither has nor names as lost. */
function unknownRecords({
  generation,
  fallbacks,
}: Pick<ManifestHeader, "generation" | "fallbacks">): Position[] {
  return journals.stored.filter(
    ({ generation: each, seq }) =>
      each !== generation &&
      !(each === OLD && seq <= AT.seq) &&
      !fallbacks.some((lost) => lost.generation === each && lost.from <= seq && seq <= lost.to),
  );
}

/** How many writes a run makes that nobody disturbs. */
async function countWrites(): Promise<number> {
  let count = 0;
  await run("count", async (write) => {
    count = write;
  });
  return count;
}

test("a shard goes on from a state, and names what it gives up", async () => {
  expect(await run("r")).toMatchObject({ shard: SHARD, generation: OLD + 1 });
  await expectRewound();
  const manifests = await snapshots.manifests();
  expect(manifests.map(({ manifest }) => [manifest.term, manifest.generation])).toEqual([
    [7, OLD],
    [8, OLD + 1],
    [8, OLD + 1],
  ]);
});

test("a journal in memory is not kept", async () => {
  await run("r", undefined, "memory");
  expect((await snapshots.lastManifest())?.manifest).not.toHaveProperty("past");
});

test("an abandoned journal that has to make room is not named as kept", async () => {
  journals.noSpace = true;
  await run("r");
  const made = (await snapshots.manifests()).map(({ manifest }) => manifest.past);
  expect(made).toEqual([undefined, OLD, undefined]);
  expect([...journals.streams.keys()]).toEqual([OLD + 1]);
});

// Two pieces and the state, the manifest that decides; the old stream, the new one, the state, the last manifest.
const WRITES = [1, 2, 3, 4, 5, 6, 7, 8] as const;

test("the writes of these tests are all that there are", async () => {
  expect(await countWrites()).toBe(WRITES.length);
});

describe.each(WRITES)("a crash at write %i", (at) => {
  test.each(["before", "after"] as const)(
    "%s its effect, is made good by repeating",
    async (when) => {
      const crash: AtWrite = async (write, moment) => {
        if (write === at && moment === when) throw CRASH;
      };
      await expect(run("r", crash)).rejects.toMatchObject({ code: "INTERNAL" });
      await run("again");
      journals.append();
      await takeOver();
      await expectRewound();
    },
  );

  test.each(["before", "after"] as const)(
    "%s its effect, is completed without the state and without a host, once the manifest has decided",
    async (when) => {
      const crash: AtWrite = async (write, moment) => {
        if (write === at && moment === when) throw CRASH;
      };
      await expect(run("r", crash)).rejects.toMatchObject({ code: "INTERNAL" });
      const newest = await snapshots.lastManifest();
      if (newest === undefined) throw new Error("no manifest");
      const deps = { journal: journals.journal, storage: "file", store: snapshots } as const;
      const by = { host: "h", owner: "again" };
      const completed = await completeContinuation(deps, newest, by);
      expect(completed).toEqual(await snapshots.lastManifest());
      journals.append();
      if (newest.manifest.created !== "") expect(completed).toBe(newest);
      if (completed.manifest.generation > OLD) await expectRewound();
    },
  );

  test("loses nothing if nobody repeats it", async () => {
    const crash: AtWrite = async (write, moment) => {
      if (write === at && moment === "before") throw CRASH;
    };
    await expect(run("r", crash)).rejects.toMatchObject({ code: "INTERNAL" });
    const decided = (await snapshots.lastManifest())?.manifest.generation === OLD + 1;
    await takeOver();
    if (decided) return await expectRewound();
    const newest = await snapshots.lastManifest();
    expect(newest?.manifest).toMatchObject({ generation: OLD, seq: LAST, host: "next" });
    expect(journals.streams.get(OLD)?.takesRecords).toBe(true);
  });
});

test("a continuation is completed by nobody whom a host has overtaken", async () => {
  const crash: AtWrite = async (write) => {
    if (write === 5) throw CRASH;
  };
  await expect(run("r", crash)).rejects.toMatchObject({ code: "INTERNAL" });
  const newest = await snapshots.lastManifest();
  if (newest === undefined) throw new Error("no manifest");
  await takeOver();
  const deps = { journal: journals.journal, storage: "file", store: snapshots } as const;
  const completing = completeContinuation(deps, newest, { host: "h", owner: "late" });
  await expect(completing).rejects.toMatchObject({ code: "NOT_OWNER" });
  await expectRewound();
});

describe.each(WRITES)(
  "a run that is repeated up to write %i after one that was interrupted",
  (at) => {
    test.each([5, 6, 7, 8])("at write %i, names what both have given up", async (first) => {
      const crashAt =
        (last: number): AtWrite =>
        async (write, moment) => {
          if (write === last && moment === "before") throw CRASH;
        };
      await expect(run("r", crashAt(first))).rejects.toMatchObject({ code: "INTERNAL" });
      const repeated = run("again", crashAt(at), "file", true);
      await expect(repeated).rejects.toMatchObject({ code: "INTERNAL" });
      await takeOver();
      const newest = (await snapshots.lastManifest())?.manifest;
      expect(newest?.generation).toBe(at > 4 ? OLD + 2 : OLD + 1);
      if (newest !== undefined) expect(unknownRecords(newest)).toEqual([]);
    });
  },
);

describe.each(WRITES)("a run that is overtaken before write %i", (at) => {
  test("by another one and a host, changes nothing any more", async () => {
    let seqs: number[] = [];
    const overtaken: AtWrite = async (write, moment) => {
      if (write !== at || moment !== "before") return;
      await run("faster");
      await takeOver();
      seqs = (await snapshots.manifests()).map(({ seq }) => seq);
    };
    const result = run("r", overtaken);
    // The manifest that decides is the write after the pieces and the state.
    if (at <= 4) await expect(result).rejects.toMatchObject({ code: "NOT_OWNER" });
    else expect((await result)?.generation).toBe(OLD + 1);
    expect((await snapshots.manifests()).map(({ seq }) => seq)).toEqual(seqs);
    expect((await snapshots.lastManifest())?.manifest.owner).toBe("next");
    await expectRewound();
  });
});
