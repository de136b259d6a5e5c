import type { Block } from "../../actors/fold/block-actor.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { measure } from "../../actors/fold/statistics.ts";
import { elementCount, JobSubjects } from "../../protocol/index.ts";
import { blockElements, locateParameter } from "../blame.ts";
import type { Cut } from "../points.ts";
import { type FoldVisitor, foldRecords, loadBase } from "../replay/replay-shard.ts";
import { type HistorySource, startOf, type TimedRecord, takeInventory } from "../source.ts";

/** Samples of a shard above which every other one is dropped. */
const SAMPLES_MAX = 256;

/** What a parameter's values were like at some time. */
export interface ParameterSample {
  /** When the last record before was stored, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly norm: number;
  /** Ends of the finite elements; undefined if there is none. */
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** Sums over the blocks that a shard has of a parameter, after a record. */
interface ShardSample {
  readonly timeMs: number;
  readonly squares: number;
  readonly min: number;
  readonly max: number;
}

/**
 * Folds the shards of a parameter again, from the first records that are kept up to a cut, and samples its values as
 * they changed: at most {@link SAMPLES_MAX} times for each shard. The samples are those of all shards in the order of
 * time; each has the last values of every shard.
 * @throws UNKNOWN_PARAMETER if it is not there at the cut; as `replayShard`.
 */
export async function parameterHistory(
  source: HistorySource,
  parameter: string,
  until: Cut,
  signal: AbortSignal,
): Promise<ParameterSample[]> {
  const held = await locateParameter(source, until, parameter, signal);
  const blocks = Math.ceil(elementCount(held.header.shape) / blockElements(held.header));
  const ofShard = new Map<number, number[]>();
  for (let index = 0; index < blocks; index++) {
    // Consecutive blocks are in consecutive shards.
    const ahead = (index - held.header.index) % source.shards;
    const shard = (held.shard + ahead + source.shards) % source.shards;
    ofShard.set(shard, [...(ofShard.get(shard) ?? []), index]);
  }
  const sampled: ShardSample[][] = [];
  for (const [number, indices] of ofShard) {
    const to = until[number];
    if (to === undefined) continue;
    const history = source.shard(number);
    const from = startOf(await takeInventory(history), to);
    const subjects = new JobSubjects(source.job);
    const shard = await loadBase(history, from, { subjects, signal });
    const sampler = new Sampler(parameter, indices);
    await foldRecords(shard, history, to, { signal, visitor: sampler });
    sampled.push(sampler.finish(shard));
  }
  return joinSamples(sampled);
}

/** Samples the blocks of a parameter while their shard is folded, ever more rarely. */
class Sampler implements FoldVisitor {
  readonly #parameter: string;
  readonly #indices: readonly number[];
  #samples: ShardSample[] = [];
  #stride = 1;
  #changes = 0;
  #versions = 0;
  #timeMs = 0;

  constructor(parameter: string, indices: readonly number[]) {
    this.#parameter = parameter;
    this.#indices = indices;
  }

  after({ timeMs }: TimedRecord, shard: Shard): void {
    let versions = 0;
    for (const block of this.#blocks(shard)) versions += block.version + block.epoch;
    if (versions === this.#versions) return;
    this.#versions = versions;
    this.#timeMs = timeMs;
    this.#changes += 1;
    if (this.#changes % this.#stride !== 0) return;
    this.#samples.push(this.#sample(shard));
    if (this.#samples.length < SAMPLES_MAX) return;
    this.#samples = this.#samples.filter((_, i) => i % 2 === 1);
    this.#stride *= 2;
  }

  /** Returns the samples, with one of the last values. */
  finish(shard: Shard): ShardSample[] {
    const isSampled = this.#samples.at(-1)?.timeMs === this.#timeMs;
    if (this.#changes > 0 && !isSampled) this.#samples.push(this.#sample(shard));
    return this.#samples;
  }

  *#blocks(shard: Shard): Generator<Block, void, undefined> {
    for (const index of this.#indices) {
      const block = shard.block(this.#parameter, index);
      if (block !== undefined) yield block;
    }
  }

  #sample(shard: Shard): ShardSample {
    let squares = 0;
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (const block of this.#blocks(shard)) {
      const found = measure(shard.memory, { dtype: block.dtype, bytes: block.values() });
      squares += found.norm * found.norm;
      min = Math.min(min, found.min ?? min);
      max = Math.max(max, found.max ?? max);
    }
    return { timeMs: this.#timeMs, squares, min, max };
  }
}

/** Joins the samples of shards, each in the order of time. */
function joinSamples(shards: readonly (readonly ShardSample[])[]): ParameterSample[] {
  const all = shards.flatMap((samples, shard) => samples.map((sample) => ({ shard, sample })));
  all.sort((a, b) => a.sample.timeMs - b.sample.timeMs);
  const last = new Map<number, ShardSample>();
  return all.map(({ shard, sample }) => {
    last.set(shard, sample);
    let squares = 0;
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (const each of last.values()) {
      squares += each.squares;
      min = Math.min(min, each.min);
      max = Math.max(max, each.max);
    }
    const ends = min > max ? { min: undefined, max: undefined } : { min, max };
    return { timeMs: sample.timeMs, norm: Math.sqrt(squares), ...ends };
  });
}
