// Proves on a real broker that the debugger's answers are those of the real run, whatever has happened: random
// trainings with several optimizers and trainers that come and go, hosts that are killed, snapshots, and journals
// that are trimmed. Blocks pulled at random moments equal the replays to their positions, byte for byte, from the
// live journal, from an archive, from both as one and from a recorded file; what is trimmed is told; a fold with
// nothing left out is what the hosts hold; the changes of an element sum to the difference of its values.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import { Archiver } from "../../../src/history/archive/job-archiver.ts";
import { writeRecording } from "../../../src/history/archive/recorded-file.ts";
import {
  blameElement,
  type ElementName,
  type ElementPlace,
  locateElement,
} from "../../../src/history/blame.ts";
import { viewElements } from "../../../src/history/compare-models.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import type { Cut } from "../../../src/history/points.ts";
import { LocalReplayer, modelWhatIf, replayModel } from "../../../src/history/replay/replayer.ts";
import { resolvePoint } from "../../../src/history/resolve-point.ts";
import type { HistoryPlace } from "../../../src/history/source.ts";
import {
  type HistorySource,
  rebuildableRanges,
  takeInventory,
} from "../../../src/history/source.ts";

import { verifyServed } from "../../../src/history/verify.ts";
import { comparePositions, type Position } from "../../../src/protocol/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { failureOf } from "../../history/failure.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS } from "../../support/limits.ts";
import { snapshotAll } from "../host/control.ts";
import { digestOf, Observer, type PulledBlock } from "./pulled.ts";
import { type Act, RandomTraining, SMALL, trainings } from "./random-training.ts";

const SHARDS = 3;
const { signal } = new AbortController();

/** Little, so that journals are trimmed while they are written. */
const SIZES = { snapshotBytes: 80_000, retainBytes: 160_000, leaseMs: LASTING_LEASE_MS } as const;

/** Pulled blocks that are compared with a replay of their own, in each source. */
const REPLAYS = 3;

/** A run with all that was seen of it. */
interface Seen {
  readonly job: TestJob;
  readonly directory: string;
  /** In the order in which they were pulled. */
  readonly pulled: readonly PulledBlock[];
  readonly live: HistorySource;
  readonly archive: HistorySource;
  /** The archive and the broker as one. */
  readonly joined: HistorySource;
  readonly recorded: HistorySource;
}

/** Runs a training in a new job, while an observer pulls and an archiver copies, and uses what was seen. */
async function withTraining(
  options: Partial<HostOptions>,
  acts: readonly Act[],
  use: (seen: Seen) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "pserver-random-"));
  const job = await TestJob.start({ shards: SHARDS, ...SIZES, ...options });
  const sources: HistorySource[] = [];
  const opened = async (place: HistoryPlace): Promise<HistorySource> => {
    const source = await openHistory(place);
    sources.push(source);
    return source;
  };
  try {
    await job.host();
    const connection = { servers: [job.broker.url], timeoutMs: HANG_MS };
    const live = await opened({ kind: "broker", connection, job: job.job });
    const training = await RandomTraining.begin(job);
    const archived = join(directory, "archive");
    const archiver = await Archiver.open({ source: live, directory: archived, run: 1 });
    const pulled = await observed(job, training, acts, () => archiver.copy(signal));
    await archiver.close();
    const archive = await opened({ kind: "archive", archive: archived });
    const joined = await opened({ kind: "broker", connection, job: job.job, archive: archived });
    const file = join(directory, "span.pserver");
    const early = earlyIn(pulled);
    const from = await resolvePoint(archive, pointOf(early), signal);
    const to = await resolvePoint(archive, { kind: "now" }, signal);
    await writeRecording(file, archive, { from: from.cut, to: to.cut }, { signal });
    const recorded = await opened({ kind: "archive", archive: file });
    await use({ job, directory, pulled, live, archive, joined, recorded });
  } finally {
    for (const source of sources) await source.close();
    await job.remove();
    await rm(directory, { recursive: true });
  }
}

/** A block pulled in the first half, after a gradient, so that all parameters were there. */
function earlyIn(pulled: readonly PulledBlock[]): PulledBlock {
  const changed = pulled.filter(({ parameter, version }) => parameter === "plain" && version > 1);
  return changed[Math.floor(changed.length / 3)] as PulledBlock;
}

function pointOf({ shard, position }: PulledBlock) {
  return { kind: "position", shard, ...position } as const;
}

/** The blocks that an observer pulls, again and again, during a training and after it. */
async function observed(
  job: TestJob,
  training: RandomTraining,
  acts: readonly Act[],
  copy: () => Promise<void>,
): Promise<PulledBlock[]> {
  const infos = await training.client.listParams();
  const observer = await Observer.open(job);
  const pulled: PulledBlock[] = [];
  let rounds = 0;
  const pullAll = async () => {
    // The large parameter, which changes less, now and then.
    const chosen = infos.filter(({ name }) => name !== "embedding" || rounds % 3 === 0);
    for (const info of chosen) pulled.push(...(await observer.pull(info)));
    rounds += 1;
  };
  let isOver = false;
  let wake = (): void => undefined;
  const acted = async () => {
    await copy();
    wake();
  };
  const work = training.run(acts, acted).finally(() => {
    isOver = true;
    wake();
  });
  // Its failure is told below.
  work.catch(() => undefined);
  while (!isOver) {
    // While one thing happens, and again when the next has begun.
    const next = new Promise<void>((resolve) => {
      wake = resolve;
    });
    await pullAll();
    if (!isOver) await next;
  }
  await work;
  // The last one, so that nothing is trimmed any more.
  await snapshotAll(job);
  rounds = 0;
  await pullAll();
  await copy();
  await observer.close();
  return distinct(pulled);
}

/** Without blocks that were pulled again while nothing had changed. */
function distinct(pulled: readonly PulledBlock[]): PulledBlock[] {
  const keyOf = ({ parameter, index, position, version, digest }: PulledBlock) =>
    JSON.stringify([parameter, index, position, version, digest]);
  return [...new Map(pulled.map((block) => [keyOf(block), block])).values()];
}

/**
 * Compares every pulled block that a source reaches back to with the fold, which follows the journal, and some
 * with replays of their own; what it does not reach must be told as lost.
 * @returns how many it reaches.
 */
async function checkSource(source: HistorySource, pulled: readonly PulledBlock[]): Promise<number> {
  let reached = 0;
  for (let shard = 0; shard < SHARDS; shard++) {
    const inventory = await takeInventory(source.shard(shard));
    const reach = rebuildableRanges(inventory);
    const own = pulled
      .filter((block) => block.shard === shard)
      .toSorted((a, b) => comparePositions(a.position, b.position));
    const inside = own.filter(({ position: { generation, seq } }) =>
      reach.some(
        (part) => part.generation === generation && part.firstSeq <= seq && seq <= part.lastSeq,
      ),
    );
    for (const block of own.filter((each) => !inside.includes(each)).slice(0, 1)) {
      expect((await failureOf(replayed(source, block))).code).toBe("HISTORY_LOST");
    }
    const [first] = inside;
    if (first === undefined) continue;
    const following = await replayed(source, first);
    for (const block of inside) {
      await following.advance(block.position);
      await expectSame(following, block);
    }
    for (const block of spread(inside, REPLAYS)) {
      await expectSame(await replayed(source, block), block);
    }
    reached += inside.length;
  }
  return reached;
}

function replayed(source: HistorySource, { shard, position }: PulledBlock) {
  return new LocalReplayer(source, signal).replay(shard, position);
}

async function expectSame(
  shard: Awaited<ReturnType<typeof replayed>>,
  { parameter, index, version, digest, position }: PulledBlock,
): Promise<void> {
  const at = `${parameter} block ${index} at ${shard.shard}:${position.seq}`;
  const header = shard.blocks.find((each) => each.parameter === parameter && each.index === index);
  expect(header?.version, at).toBe(version);
  expect(digestOf(await shard.slot(parameter, index, 0)), at).toBe(digest);
}

/** So many of a list, ends included. */
function spread<T>(all: readonly T[], count: number): T[] {
  const step = Math.max(1, (all.length - 1) / (count - 1));
  const chosen = Array.from({ length: count }, (_, i) => all[Math.round(i * step)]);
  return chosen.filter((each) => each !== undefined);
}

/** Folds with nothing changed, from where a source begins, and compares that with what hosts hold. */
async function checkWhatIf({ live, archive }: Seen): Promise<void> {
  const nothing = { withoutTrainers: [], withoutRecords: [] };
  const { cut } = await resolvePoint(live, { kind: "now" }, signal);
  for (const source of [live, archive]) {
    const span = { from: undefined, to: cut };
    const replayer = new LocalReplayer(source, signal);
    const { model, counts } = await modelWhatIf(replayer, span, nothing);
    expect(counts).toEqual({ leftOut: 0, changed: 0 });
    const real = await replayModel(replayer, cut);
    for (const [at, shard] of model.shards.entries()) {
      expect(await shard.digest()).toBe(await real.shards[at]?.digest());
      if (source === live) expect(await verifyServed(live, shard)).toMatchObject({ kind: "equal" });
    }
  }
}

/** Sums the changes of some elements from a moment on. */
async function checkBlame({ archive, pulled }: Seen, at: number): Promise<void> {
  const since = (await resolvePoint(archive, pointOf(earlyIn(pulled)), signal)).cut;
  const until = (await resolvePoint(archive, { kind: "now" }, signal)).cut;
  const names: ElementName[] = Object.entries(SMALL).map(([parameter, elements]) => {
    return { parameter, indices: [at % elements] };
  });
  for (const name of [...names, { parameter: "embedding", indices: [7, at % 1_000] }]) {
    const place = await locateElement(archive, until, name, signal);
    const changes: number[] = [];
    const found = await blameElement(archive, place, {
      ...{ since, until, signal },
      onChange: ({ change }) => changes.push(Number(change)),
    });
    expect(found.last).toBe(await lastOf(archive, place, pulled, until));
    const moved = Number(found.last) - Number(found.first);
    const totals = [...found.trainers.values(), ...found.steps.values()];
    for (const sums of [changes, totals.map(({ sum }) => Number(sum)), [Number(found.sum)]]) {
      const sum = sums.reduce((all, each) => all + each, 0);
      expect(sum, `${name.parameter}[${name.indices}]`).toBeCloseTo(moved, 9);
    }
  }
}

/** An element at the end, of a block with the bytes that were pulled last. */
async function lastOf(
  source: HistorySource,
  { shard: number, parameter, index, element }: ElementPlace,
  pulled: readonly PulledBlock[],
  until: Cut,
): Promise<unknown> {
  const shard = await new LocalReplayer(source, signal).replay(number, until[number] as Position);
  const block = shard.blocks.find((each) => each.parameter === parameter && each.index === index);
  if (block === undefined) throw new Error(`expected block ${index} of ${parameter}`);
  const values = await shard.slot(parameter, index, 0);
  const last = pulled.findLast((each) => each.parameter === parameter && each.index === index);
  expect(digestOf(values)).toBe(last?.digest);
  return viewElements(block.dtype, values)[element - block.start];
}

/** The commands read each source as the package does. */
async function checkCommands({ job, directory, pulled }: Seen): Promise<void> {
  const block = pulled.findLast(({ parameter }) => parameter === "heavy") as PulledBlock;
  const out = join(directory, "values.bin");
  const environment = { PSERVER_URL: job.broker.url, PSERVER_JOB: job.job };
  const archive = join(directory, "archive");
  const from = [
    [],
    ["--archive", archive, "--no-broker"],
    ["--from-file", join(directory, "span.pserver")],
  ];
  for (const flags of from) {
    const to = `${block.shard}:${block.position.seq}`;
    const replay = ["replay", "--to", to, "--param", "heavy", "--out", out, ...flags];
    const { code, stderr } = await run(replay, { environment });
    expect([code, stderr]).toEqual([0, expect.stringContaining("the cut")]);
    expect(digestOf(await readFile(out)), flags.join(" ")).toBe(block.digest);
  }
}

test.each([
  ["async", {}],
  ["sync", { synchronization: { mode: "sync", trainers: 2 } }],
] as const)("a random %s training is the same from every source", async (_mode, options) => {
  const property = fc.asyncProperty(trainings, fc.nat(1e6), async (acts, at) => {
    await withTraining(options, acts, async (seen) => {
      const { live, archive, joined, recorded, pulled } = seen;
      const liveReach = await checkSource(live, pulled);
      const fileReach = await checkSource(recorded, pulled);
      expect(await checkSource(archive, pulled)).toBe(pulled.length);
      expect(await checkSource(joined, pulled)).toBe(pulled.length);
      expect(liveReach).toBeLessThan(pulled.length);
      expect(Math.min(liveReach, fileReach)).toBeGreaterThan(0);
      await checkWhatIf(seen);
      await checkBlame(seen, at);
      await checkCommands(seen);
    });
  });
  // A failure is told with its seed; to shrink it would take minutes.
  await fc.assert(property, { numRuns: 1, endOnFailure: true });
});
