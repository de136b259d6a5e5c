import { type ErrorCode, PserverError } from "../../protocol/errors.ts";
import type { PushRecord, SetRecord } from "../../protocol/records.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { blockLabel, type StoredBlock } from "./block.ts";
import type { BlockTable } from "./block-table.ts";
import type { Payload } from "./payload.ts";
import { allFinite } from "./tensor-arithmetic.ts";

/** The block that a record names. */
export interface BlockName {
  readonly parameter: string;
  readonly index: number;
}

/**
 * The block that a `push` or `set` is for, if epoch and element type are its own.
 * @throws NOT_INITIALIZED, STALE_EPOCH or BAD_DTYPE
 */
export function checkTarget(
  blocks: BlockTable,
  { parameter, index }: BlockName,
  record: PushRecord | SetRecord,
): StoredBlock {
  const block = blocks.get(parameter, index);
  if (block === undefined) {
    const label = blockLabel(parameter, index);
    throw refused(
      "NOT_INITIALIZED",
      `${label}: expected an init of epoch ${record.epoch} before; found none`,
    );
  }
  const { label } = block;
  if (record.epoch !== block.epoch) {
    throw refused(
      "STALE_EPOCH",
      `${label}: expected epoch ${block.epoch}; received ${record.epoch}`,
    );
  }
  if (record.dtype !== block.dtype) {
    throw refused("BAD_DTYPE", `${label}: expected ${block.dtype}; received ${record.dtype}`);
  }
  return block;
}

/** @throws BAD_LENGTH unless there are as many bytes as expected. */
export function checkBytes({ label }: StoredBlock, expected: number, received: number): void {
  if (received === expected) return;
  throw refused("BAD_LENGTH", `${label}: expected ${expected} bytes; received ${received}`);
}

/** @throws STATIC if the parameter takes no update. */
export function checkNotStatic({ label, config }: StoredBlock): void {
  if (!config.static) return;
  throw refused("STATIC", `${label}: the parameter is static`);
}

/**
 * Passes if the elements are finite, and the norm of the whole tensor they are a piece of if it is
 * known, or need not be. The norm makes all pieces of one gradient be refused alike.
 * @throws NON_FINITE
 */
export function checkFinite(
  memory: ShardMemory,
  { label, config }: Pick<StoredBlock, "label" | "config">,
  payload: Payload,
  norm?: number,
): void {
  if (config.allowNonFinite) return;
  if (norm !== undefined && !Number.isFinite(norm)) {
    throw refused("NON_FINITE", `${label}: expected a finite norm; received ${norm}`);
  }
  if (allFinite(memory, payload)) return;
  throw refused(
    "NON_FINITE",
    `${label}: expected finite elements; received a NaN or an infinity among ` +
      `${payload.bytes.length} bytes`,
  );
}

/** The error of a record that is refused: the code and the message are what its sender gets. */
export function refused(code: ErrorCode, message: string): PserverError {
  return new PserverError(code, message);
}
