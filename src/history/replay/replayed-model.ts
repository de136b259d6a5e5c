import type { BlockHeader } from "../../actors/fold/block.ts";
import type { ParameterConfig } from "../../protocol/config/index.ts";
import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { elementCount, PserverError, quoteName, type Tensor } from "../../protocol/index.ts";
import { tensorView, zeros } from "../../protocol/tensor.ts";
import type { ReplayedShard } from "./replayed-shard.ts";

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
  /** By index; of its newest epoch only. */
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

  /** All parameters, by name, those too that were being initialized. */
  get parameters(): ReplayedParameter[] {
    return [...this.#parameters.values()];
  }

  /** @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED if only some of its blocks were. */
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

  /** The values of a parameter. @throws as {@link parameter}. */
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

  /** The bytes of a parameter's values, or of a slot of its optimizer, block by block, in C order. */
  async *chunks(
    { name, blocks }: ReplayedParameter,
    slot = 0,
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    for (const { index, shard } of blocks) yield await shard.slot(name, index, slot);
  }

  /** Frees the memory of its shards; it must not be used afterwards. */
  async free(): Promise<void> {
    await Promise.all(this.shards.map((shard) => shard.free()));
  }
}

/** Bytes of a parameter's values. */
export function parameterBytes({ dtype, shape }: ReplayedParameter): number {
  return elementCount(shape) * DTYPES[dtype].bytes;
}

/** The parameters, by name, that blocks of shards belong to. */
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
