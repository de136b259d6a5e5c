import {
  asMap,
  decodeMessage,
  encodeMessage,
  type Fallback,
  integerField,
  listField,
  PserverError,
  parseFallbacks,
  textField,
} from "../../protocol/index.ts";

/** A message of the snapshot stream, named by its sequence and known by its checksum. */
export interface PieceRef {
  readonly seq: number;
  readonly crc: number;
}

/**
 * The record that commits a snapshot. It is also the fence of ownership: who takes a shard over
 * writes the newest manifest again under the next term, and the old owner's next write is refused.
 */
export interface Manifest {
  readonly term: number;
  readonly host: string;
  /** Unlike that of any other taking over: what is written under another one deposes. */
  readonly owner: string;
  readonly generation: number;
  /** Creation time of the journal stream, "" while the stream has still to be made. */
  readonly created: string;
  /** What the shard did not keep of journals that were replaced, oldest first; the newest of them. */
  readonly fallbacks: readonly Fallback[];
  /** The last record that the snapshot holds, 0 for none, and its checksum. */
  readonly seq: number;
  readonly recordCrc: number;
  /** The parts of the fold's state, in order; it names the pieces of the blocks. */
  readonly state: readonly PieceRef[];
  /** Every piece of every block, so that the pieces nobody names can be found. */
  readonly pieces: readonly number[];
}

/** A manifest together with its place in the snapshot stream. */
export interface StoredManifest {
  readonly seq: number;
  readonly manifest: Manifest;
}

/** Parts a state may be cut into, and blocks a shard may have. */
const LIST_MAX = 1_000_000;

/** A manifest as a message. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  return encodeMessage({
    ...manifest,
    state: manifest.state.map(({ seq, crc }) => [seq, crc]),
  });
}

/**
 * The manifest in a message.
 * @throws SNAPSHOT_DAMAGED if it cannot be read.
 */
export function decodeManifest(bytes: Uint8Array): Manifest {
  try {
    const { fields } = decodeMessage(bytes);
    return {
      term: integerField(fields, "term", 1),
      host: textField(fields, "host"),
      owner: textField(fields, "owner"),
      generation: integerField(fields, "generation", 1),
      created: textField(fields, "created"),
      fallbacks: parseFallbacks(fields),
      seq: integerField(fields, "seq"),
      recordCrc: integerField(fields, "recordCrc"),
      state: listField(fields, "state", LIST_MAX).map(toPieceRef),
      pieces: listField(fields, "pieces", LIST_MAX).map((seq) => integerField({ seq }, "seq", 1)),
    };
  } catch (cause) {
    throw new PserverError("SNAPSHOT_DAMAGED", "a manifest cannot be read", {}, { cause });
  }
}

/** A piece named in a list; @throws BAD_MESSAGE if it is none. */
export function toPieceRef(value: unknown): PieceRef {
  const row = Array.isArray(value) ? { seq: value[0] as unknown, crc: value[1] as unknown } : value;
  const fields = asMap(row, "piece");
  return { seq: integerField(fields, "seq", 1), crc: integerField(fields, "crc") };
}
