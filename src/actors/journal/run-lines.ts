import { type Dtype, type Encoding, encodedBytes } from "../../protocol/dtypes.ts";
import type { PartCounts } from "../../protocol/messages/parts.ts";
import {
  type EntryOffsets,
  entryBytes,
  firstOffsets,
  passEntry,
  type RunChange,
} from "../fold/batch/run-change.ts";
import { type BlockActor, versionsSince } from "../fold/block-actor.ts";
import { MEASURED, measureInto, type Statistics } from "../fold/statistics.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockChange, BlockOperation } from "./block-change.ts";

/** Statistics that are filled anew for each entry. */
class EntryStatistics implements Statistics {
  norm = 0;
  min: number | undefined;
  max: number | undefined;
  mean: number | undefined;
  zeros = 0;
  nonFinite = 0;

  /** Takes the results of measuring `count` elements, from a place of an array on, as `statisticsAt` does. */
  take(results: Float64Array, at: number, count: number): void {
    this.norm = Math.sqrt(results[at] as number);
    this.zeros = results[at + 4] as number;
    this.nonFinite = results[at + 5] as number;
    const finite = count - this.nonFinite;
    this.min = finite === 0 ? undefined : (results[at + 2] as number) + 0;
    this.max = finite === 0 ? undefined : (results[at + 3] as number) + 0;
    this.mean = finite === 0 ? undefined : (results[at + 1] as number) / finite + 0;
  }
}

/** What an entry did to its block; filled anew for each entry. */
class EntryChange implements BlockChange {
  parameter = "";
  index = 0;
  operation: BlockOperation = { op: "set" };
  dtype: Dtype = "float32";
  encoding: Encoding | undefined;
  part: PartCounts | undefined;
  elements = 0;
  bytes = 0;
  readonly statistics: EntryStatistics = new EntryStatistics();
  version: number | undefined;
  behind: number | undefined;
}

/**
 * The changes of the blocks of a batch that was applied, one after the other. Every change is the same object, because
 * a host describes every update that it folds.
 */
export class RunLines {
  readonly entries: number;
  readonly #runs: readonly RunChange[];
  readonly #memory: ShardMemory;
  readonly #change = new EntryChange();
  readonly #results = new Float64Array(MEASURED);
  #run = 0;
  #place = 0;
  #offsets: EntryOffsets = firstOffsets();

  /** Must be used by the observer of the shard with this memory. */
  constructor(runs: readonly RunChange[], memory: ShardMemory) {
    this.#runs = runs;
    this.#memory = memory;
    this.entries = runs.reduce((sum, { run }) => sum + run.numbers.length, 0);
  }

  /** The step that the gradients name. */
  get step(): number | undefined {
    for (const { run } of this.#runs) {
      if (run.operation?.op === "grad") return run.operation.step;
    }
    return undefined;
  }

  /** What the next entry asks for. */
  get verb(): "init" | "push" | "set" {
    return this.#current().run.verb;
  }

  /** Returns the change of the next entry, valid until the next call. */
  next(): BlockChange & { readonly statistics: Statistics } {
    const runChange = this.#current();
    const { run, sent, blocks, measured } = runChange;
    const place = this.#place;
    const block = blocks[place] as BlockActor;
    const change = this.#change;
    const count = run.counts[place] as number;
    if (place === 0) {
      change.operation = operationOf(runChange);
      change.dtype = run.dtype;
      change.encoding = sent.encoding;
    }
    change.parameter = block.parameter;
    change.index = block.index;
    change.part = partOf(runChange, place);
    change.elements = count;
    change.bytes = encodedBytes(sent.dtype, sent.encoding, count);
    change.version = run.verb === "init" ? 1 : block.version;
    change.behind = behindOf(runChange, place, block);
    if (measured === undefined) {
      const bytes = entryBytes(run, place, this.#offsets);
      const { dtype, encoding } = run;
      measureInto(this.#memory, { dtype, encoding, bytes }, this.#results, 0);
    }
    change.statistics.take(measured ?? this.#results, measured ? place * MEASURED : 0, count);
    passEntry(run, place, this.#offsets);
    this.#place += 1;
    return change;
  }

  #current(): RunChange {
    let change = this.#runs[this.#run] as RunChange;
    if (this.#place === change.run.numbers.length) {
      this.#run += 1;
      this.#place = 0;
      this.#offsets = firstOffsets();
      change = this.#runs[this.#run] as RunChange;
    }
    return change;
  }
}

function operationOf({ run }: RunChange): BlockOperation {
  const { verb, operation } = run;
  if (operation === undefined) return { op: verb === "init" ? "init" : "set" };
  if (operation.op === "grad") return { op: "grad", lr: operation.lr };
  return operation;
}

function partOf({ run: { parts } }: RunChange, place: number): PartCounts | undefined {
  if (parts === undefined) return undefined;
  const rows = parts.rows[place] as number;
  return parts.inner === undefined ? { rows } : { rows, inner: parts.inner[place] as number };
}

/** Returns how many versions a block was ahead of the values from which a gradient was computed. */
function behindOf({ run }: RunChange, place: number, block: BlockActor): number | undefined {
  const seen = run.seen?.[place] ?? 0;
  if (seen === 0) return undefined;
  return versionsSince(block, seen);
}
