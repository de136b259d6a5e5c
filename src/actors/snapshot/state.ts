import {
  asMap,
  decodeMessage,
  integerField,
  listField,
  PserverError,
  textField,
  unpackValue,
} from "../../protocol/index.ts";
import type { Manifest } from "./manifest.ts";
import { type PieceRef, toPieceRef } from "./manifest.ts";
import type { SnapshotStore } from "./store.ts";

/** The stored pieces of one block, as it was at one epoch and version: values, then slots 1, 2, …. */
export interface BlockPieces {
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
  readonly version: number;
  /** Gradients that its open step had added up. */
  readonly accumulated: number;
  readonly slots: readonly PieceRef[];
}

/** What the state parts of a snapshot hold: the fold without its values, and where those are. */
export interface SnapshotState {
  readonly fold: unknown;
  readonly pieces: readonly BlockPieces[];
}

/** Blocks a shard may have. */
const BLOCKS_MAX = 1_000_000;

/** Values and slots a block may have. */
const SLOTS_MAX = 16;

/** A block's key in tables: names may hold any character but none is cut in two by this one. */
export function blockKey(parameter: string, index: number): string {
  return `${index}:${parameter}`;
}

/**
 * The state that a manifest names.
 * @throws SNAPSHOT_DAMAGED if a part is lost or changed.
 */
export async function readSnapshotState(
  store: SnapshotStore,
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
