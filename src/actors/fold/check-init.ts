import type { PserverError } from "../../protocol/errors.ts";
import { type BlockExtent, isWholeRows } from "../../protocol/parts.ts";
import type { InitRecord } from "../../protocol/records.ts";
import { elementCount } from "../../protocol/tensor.ts";
import { blockLabel } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import { type BlockName, refused } from "./check-record.ts";
import type { Rules } from "./rules.ts";
import { heldBytes, type SlotPlan } from "./slots.ts";

/**
 * Passes if an `init` may create its block with these slots, or replace the one there.
 * @throws ALREADY_INITIALIZED, STALE_EPOCH, BAD_VALUE or TOO_LARGE
 */
export function checkInit(
  blocks: BlockTable,
  { parameter, index }: BlockName,
  record: InitRecord,
  plan: SlotPlan,
  rules: Rules,
): void {
  const label = blockLabel(parameter, index);
  const present = blocks.get(parameter, index);
  if (present?.epoch === record.epoch) {
    throw refused("ALREADY_INITIALIZED", `${label}: initialized under epoch ${record.epoch}`);
  }
  if (present !== undefined && record.epoch < present.epoch) {
    throw refused(
      "STALE_EPOCH",
      `${label}: expected epoch above ${present.epoch}; received ${record.epoch}`,
    );
  }
  if (!isPlaced(index, record)) throw misplaced(label, "the place of such a block", record);
  if (record.config.sparse && !isWholeRows(record)) {
    throw misplaced(label, "whole rows, because the parameter is sparse", record);
  }
  const bytes = blocks.bytes - (present?.heldBytes ?? 0) + heldBytes(record, plan);
  checkAtMost(label, rules.shardBytesMax, bytes, "bytes of values and slots");
  const count = blocks.count + (present === undefined ? 1 : 0);
  checkAtMost(label, rules.blocksMax, count, "blocks");
}

/**
 * Whether a layout exists in which block `index` has this place: every block but the last has the
 * same number of elements, in order, without a gap.
 */
export function isPlaced(index: number, place: BlockExtent): boolean {
  const { start, count } = place;
  const isLast = start + count === elementCount(place.shape);
  if (index === 0) return start === 0;
  if (start === 0 || start % index !== 0) return false;
  const blockElements = start / index;
  return count === blockElements || (isLast && count < blockElements);
}

function misplaced(
  label: string,
  expected: string,
  { start, count, shape }: BlockExtent,
): PserverError {
  return refused(
    "BAD_VALUE",
    `${label}: expected ${expected}; received ${count} elements from ${start} on, of shape [${shape}]`,
  );
}

function checkAtMost(label: string, most: number, received: number, of: string): void {
  if (received <= most) return;
  throw refused(
    "TOO_LARGE",
    `${label}: expected at most ${most} ${of} in the shard; received ${received}`,
  );
}
