import type { Model } from "./programs/trainer.ts";

/** A model by the name it has in the tables. */
export interface NamedModel extends Model {
  readonly name: string;
  /** Bytes of its blocks, and of the messages of the raw measurements for it. */
  readonly blockBytes: number;
  /** Parameters that one call of the latency measurement moves. */
  readonly perCall: number;
  /** Whether `--quick` measures it. */
  readonly quick: boolean;
}

const KIB = 1024;
const MIB = 1024 ** 2;

/** Many parameters of one block each, spread over the shards, and two models of 40 MB. */
export const MODELS: readonly NamedModel[] = [
  ofBlocks("64 KiB", 64 * KIB, 256, false),
  ofBlocks("1 MiB", MIB, 32, true),
  ofBlocks("4 MiB", 4 * MIB, 16, false),
  {
    name: "10 × 4 MB",
    prefix: "ten",
    parameters: 10,
    shape: [1_000_000],
    blockBytes: 4_000_000,
    perCall: 10,
    quick: true,
  },
  {
    // Rows of 4,000 bytes, of which 262 make a block.
    name: "1 × 40 MB",
    prefix: "one",
    parameters: 1,
    shape: [10_000, 1_000],
    blockBytes: 1_048_000,
    perCall: 1,
    quick: false,
  },
];

/** Returns the bytes of one parameter of a model. */
export function parameterBytes({ shape }: Model): number {
  return 4 * shape.reduce((product, size) => product * size, 1);
}

/** Makes a model of parameters of one block each. */
export function ofBlocks(
  name: string,
  blockBytes: number,
  parameters: number,
  quick: boolean,
): NamedModel {
  const prefix = `of-${blockBytes}`;
  return { name, prefix, parameters, shape: [blockBytes / 4], blockBytes, perCall: 1, quick };
}
