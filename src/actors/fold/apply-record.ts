import { DTYPES } from "../../protocol/dtypes.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { applyGradient } from "./apply-gradient.ts";
import type { StoredBlock } from "./block.ts";
import type { Change, InitChange, MixChange } from "./change.ts";
import type { RecordContext } from "./check-record.ts";
import { accumulateGradient } from "./open-step.ts";
import { mix, overwrite } from "./tensor-arithmetic.ts";

/**
 * Applies a change that `checkRecord` passed, or adds a gradient to its open step.
 * @returns the version that the block has then.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyChange(context: RecordContext, change: Change): number {
  if (change.kind === "init") return initialize(context, change);
  const { memory, blocks, steps, trainer } = context;
  const { block } = change;
  if (change.kind === "gradient" && waitsForStep(block)) {
    accumulateGradient(context, trainer, change);
    steps.noteGradient(trainer);
    return block.version;
  }
  blocks.beforeChange(block);
  if (change.kind === "set") overwrite(memory, block.dtype, block.pointer, change.data);
  else if (change.kind === "gradient") applyGradient(memory, change);
  else mixIn(memory, change);
  block.version += 1;
  return block.version;
}

function initialize({ memory, blocks }: RecordContext, change: InitChange): number {
  const { record, plan, data } = change;
  const { epoch, dtype, shape, start, count, config } = record;
  const header = { ...change.name, epoch, dtype, shape, start, count, config };
  const block = blocks.put({ ...header, version: 1, updates: 0 }, plan, ({ pointer }) =>
    overwrite(memory, dtype, pointer, data),
  );
  return block.version;
}

/** Whether gradients of a block wait for their step to close: of floats, in a `sync` job. */
function waitsForStep({ plan }: StoredBlock): boolean {
  return plan.accumulator !== undefined;
}

function mixIn(memory: ShardMemory, { block, payload, part, operation }: MixChange): void {
  const { rows, pointer, dtype } = block;
  const target = { rows, part, elementBytes: DTYPES[dtype].bytes, columns: [pointer] };
  mix(memory, target, payload, operation.alpha, operation.beta);
}
