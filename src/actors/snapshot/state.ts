import {
  asMap,
  decodeMessage,
  integerField,
  listField,
  PserverError,
  textField,
  unpackValue,
} from "../../protocol/index.ts";
import { type Manifest, type PieceRef, toPieceRef } from "./manifest.ts";
import type { SnapshotReader } from "./snapshot-reader.ts";

/** Stored pieces of one block at one epoch and version: its values, then slots 1, 2, … */
export interface BlockPieces {
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
  readonly version: number;
  /** Gradients added up in its open step. */
  readonly accumulated: number;
  readonly slots: readonly PieceRef[];
}

/** Content of a snapshot's state: the fold without values, and references to the values. */
export interface SnapshotState {
  readonly fold: unknown;
  readonly pieces: readonly BlockPieces[];
}

/** Limit of a shard's blocks. */
const BLOCKS_MAX = 1_000_000;

/** Limit of a block's slots, values included. */
const SLOTS_MAX = 16;

/** Key of a block in tables; unambiguous, because the index comes first and has no colon. */
export function blockKey(parameter: string, index: number): string {
  return `${index}:${parameter}`;
}

/**
 * Reads the state that a manifest names.
 * @throws SNAPSHOT_DAMAGED if a part is lost or has changed.
 */
export async function readSnapshotState(
  store: Pick<SnapshotReader, "read">,
  manifest: Manifest,
): Promise<SnapshotState> {
  const parts: Uint8Array[] = [];
  for (const ref of manifest.state) parts.push(decodeMessage(await store.read(ref)).data);
  try {
    const fields = asMap(unpackValue(Buffer.concat(parts)), "state");
    return {
      fold: fields["fold"],
      pieces: listField(fields, "pieces", BLOCKS_MAX).map(toBlockPieces),
    };
  } catch (cause) {
    throw new PserverError(
      "SNAPSHOT_DAMAGED",
      "the state of a snapshot cannot be read",
      {},
      { cause },
    );
  }
}

function toBlockPieces(value: unknown): BlockPieces {
  const fields = asMap(value, "pieces");
  return {
    parameter: textField(fields, "parameter"),
    index: integerField(fields, "index"),
    epoch: integerField(fields, "epoch", 1),
    version: integerField(fields, "version"),
    accumulated: integerField(fields, "accumulated"),
    slots: listField(fields, "slots", SLOTS_MAX).map(toPieceRef),
  };
}
