import type { BlockHeader } from "../../actors/fold/block-actor.ts";
import { blockDigest, type Shard, stateDigest } from "../../actors/fold/shard.ts";
import type { ParameterConfig } from "../../protocol/config/index.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import {
  elementCount,
  type Position,
  PserverError,
  quoteName,
  type ShardKnowledge,
  type Tensor,
} from "../../protocol/index.ts";
import { tensorView, zeros } from "../../protocol/tensor.ts";
import type { ShardHistory } from "../source.ts";
import { foldRecords } from "./replay-shard.ts";

/** A shard as it was at a position. */
export interface ReplayedShard {
  readonly shard: number;
  readonly position: Position;
  /**
   * Folds further, to a later position; does nothing if it is there already.
   * @throws JOURNAL_REPLACED for a position of another generation; else as `foldRecords`.
   */
  advance(to: Position): Promise<void>;
  /** Its blocks without their bytes, by parameter and index. */
  readonly blocks: readonly BlockHeader[];
  /** Returns what it knows of its job from hosts' records. */
  known(): Promise<ShardKnowledge>;
  /** Returns the SHA-256, in hex, of its whole state: equal if and only if the shards are. */
  digest(): Promise<string>;
  /** Returns the SHA-256, in hex, of its state without values and slots. */
  stateDigest(): Promise<string>;
  /** Returns the SHA-256, in hex, of a block's values and slots; undefined if it has no such block. */
  blockDigest(parameter: string, index: number): Promise<string | undefined>;
  /**
   * Returns a copy of the bytes of a block: slot 0 is the values, those from 1 on are what updates keep.
   * @throws UNKNOWN_PARAMETER if it has no such block, BAD_VALUE if the block has no such slot.
   */
  slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Frees its memory. It must not be used afterwards. */
  free(): Promise<void>;
}

/** A replayed shard of this thread. */
export class LocalReplayedShard implements ReplayedShard {
  readonly shard: number;
  readonly #generation: number;
  readonly #state: Shard;
  readonly #history: ShardHistory;
  readonly #signal: AbortSignal;

  /** `state`: the shard; `generation`: that of its journal; `history`: where its records are read. */
  constructor(state: Shard, generation: number, history: ShardHistory, signal: AbortSignal) {
    this.shard = history.shard;
    this.#generation = generation;
    this.#state = state;
    this.#history = history;
    this.#signal = signal;
  }

  get position(): Position {
    return { generation: this.#generation, seq: this.#state.seq };
  }

  async advance(to: Position): Promise<void> {
    if (to.generation !== this.#generation) throw replaced(this.shard, this.position, to);
    await foldRecords(this.#state, this.#history, to, { signal: this.#signal });
  }

  get blocks(): readonly BlockHeader[] {
    return this.#state.saveState().blocks;
  }

  async known(): Promise<ShardKnowledge> {
    const { more: _more, ...known } = this.#state.known("", Number.POSITIVE_INFINITY);
    return known;
  }

  async digest(): Promise<string> {
    return this.#state.digest();
  }

  async stateDigest(): Promise<string> {
    return stateDigest(this.#state);
  }

  async blockDigest(parameter: string, index: number): Promise<string | undefined> {
    const block = this.#state.block(parameter, index);
    return block && blockDigest(block);
  }

  async slot(parameter: string, index: number, slot: number): Promise<Uint8Array<ArrayBuffer>> {
    const block = this.#state.block(parameter, index);
    if (block !== undefined) return block.slotBytes(slot).slice();
    throw new PserverError(
      "UNKNOWN_PARAMETER",
      `shard ${this.shard} has no block ${index} of ${quoteName(parameter)}`,
      { parameter },
    );
  }

  async free(): Promise<void> {
    // Its memory goes with the last reference to it.
  }
}

/** Makes the error for a position of another generation than the shard's. */
function replaced(shard: number, from: Position, to: Position): PserverError {
  return new PserverError(
    "JOURNAL_REPLACED",
    `shard ${shard}: its journal of generation ${from.generation} was replaced by generation ${to.generation}`,
    { shard, expected: from, received: to },
  );
}

/** A block of a replayed parameter, and the shard that has it. */
export interface ReplayedBlock extends BlockHeader {
  readonly shard: ReplayedShard;
}

/** A parameter as it was at a cut. */
export interface ReplayedParameter {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly epoch: number;
  readonly config: ParameterConfig;
  /** Its blocks, by index; only those of its newest epoch. */
  readonly blocks: readonly ReplayedBlock[];
  /** Whether all of its elements had been initialized. */
  readonly isComplete: boolean;
}

/** The model of a job as it was at a cut: the blocks of its shards joined to parameters. */
export class ReplayedModel {
  readonly shards: readonly ReplayedShard[];
  readonly #parameters: ReadonlyMap<string, ReplayedParameter>;

  constructor(shards: readonly ReplayedShard[]) {
    this.shards = shards;
    this.#parameters = joinBlocks(shards);
  }

  /** All parameters, by name, including those that were being initialized. */
  get parameters(): ReplayedParameter[] {
    return [...this.#parameters.values()];
  }

  /** Returns a parameter. @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED if only some of its blocks were. */
  parameter(name: string): ReplayedParameter {
    const parameter = this.#parameters.get(name);
    if (parameter === undefined) {
      const message = `no parameter ${quoteName(name)} existed at that point`;
      throw new PserverError("UNKNOWN_PARAMETER", message, { parameter: name });
    }
    if (parameter.isComplete) return parameter;
    const message = `${quoteName(name)} was being initialized at that point: some blocks are missing`;
    throw new PserverError("NOT_INITIALIZED", message, { parameter: name });
  }

  /** Returns the values of a parameter. @throws as {@link parameter}. */
  async tensor(name: string): Promise<Tensor> {
    const parameter = this.parameter(name);
    const tensor = zeros(parameter.dtype, parameter.shape);
    const target = tensorView(tensor);
    let filled = 0;
    for await (const chunk of this.chunks(parameter)) {
      target.set(chunk, filled);
      filled += chunk.length;
    }
    return tensor;
  }

  /** Yields the bytes of a parameter's values, or of a slot of its optimizer, block by block, in C order. */
  async *chunks(
    { name, blocks }: ReplayedParameter,
    slot = 0,
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    for (const { index, shard } of blocks) yield await shard.slot(name, index, slot);
  }

  /** Frees the memory of its shards. It must not be used afterwards. */
  async free(): Promise<void> {
    await Promise.all(this.shards.map((shard) => shard.free()));
  }
}

/** Returns the bytes of a parameter's values. */
export function parameterBytes({ dtype, shape }: ReplayedParameter): number {
  return elementCount(shape) * DTYPES[dtype].bytes;
}

/** Returns the least and the largest version, and the number of updates, of a parameter's blocks. */
export function versionsOf({ blocks }: ReplayedParameter): {
  readonly least: number;
  readonly most: number;
  readonly updates: number;
} {
  const versions = blocks.map(({ version }) => version);
  const updates = blocks.reduce((sum, block) => sum + block.updates, 0);
  return { least: Math.min(...versions), most: Math.max(...versions), updates };
}

/** Groups the blocks of all shards into parameters, by name. */
function joinBlocks(shards: readonly ReplayedShard[]): Map<string, ReplayedParameter> {
  const found = new Map<string, ReplayedBlock[]>();
  for (const shard of shards) {
    for (const header of shard.blocks) {
      const block = { ...header, shard };
      const known = found.get(header.parameter);
      if (known === undefined) found.set(header.parameter, [block]);
      else known.push(block);
    }
  }
  const names = [...found.keys()].sort();
  return new Map(names.map((name) => [name, toParameter(name, found.get(name) ?? [])]));
}

function toParameter(name: string, all: readonly ReplayedBlock[]): ReplayedParameter {
  const epoch = Math.max(...all.map((block) => block.epoch));
  // A block of an older epoch is about to be replaced or dropped.
  const blocks = all.filter((block) => block.epoch === epoch).sort((a, b) => a.index - b.index);
  const [first] = blocks;
  if (first === undefined) throw new PserverError("INTERNAL", `${quoteName(name)} has no block`);
  const { dtype, shape, config } = first;
  const elements = blocks.reduce((sum, { count }) => sum + count, 0);
  const isComplete = elements === elementCount(shape);
  return { name, dtype, shape, epoch, config, blocks, isComplete };
}
