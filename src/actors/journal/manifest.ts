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
import { checksumField, type JournalChecksum } from "../fold/journal-checksum.ts";

/** A reference to a message of the snapshot stream: its sequence, and its checksum to verify it. */
export interface PieceRef {
  readonly seq: number;
  readonly crc: number;
}

/** The last rewind that a shard's state has gone through. */
export interface PassedRewind {
  /** The id of its plan. */
  readonly id: string;
  /** The generation with which the shard went back. */
  readonly generation: number;
}

/**
 * The message that commits a snapshot. It also fences ownership: a host that takes the shard over writes the newest
 * manifest again under the next term, so that the broker refuses the old owner's next write.
 */
export interface Manifest {
  readonly term: number;
  readonly host: string;
  /** Token unique to one take-over; a manifest with another token deposes this owner. */
  readonly owner: string;
  readonly generation: number;
  /** Creation time of the journal stream; "" before it is created. */
  readonly created: string;
  /** Records lost with journals that were replaced: the newest such losses, oldest first. */
  readonly fallbacks: readonly Fallback[];
  /** Generation of the abandoned journal that is kept as history, with its snapshots; absent if none is. */
  readonly past?: number;
  /** Absent if the state has gone through no rewind. */
  readonly rewind?: PassedRewind;
  /** Last record in the snapshot, 0 for none, with its checksum. */
  readonly seq: number;
  readonly recordCrc: number;
  /** Checksum of the journal up to that record. */
  readonly checksum: JournalChecksum;
  /** The messages of the fold's state, in order; the state names the pieces of the blocks. */
  readonly state: readonly PieceRef[];
  /** Sequences of all pieces of all blocks; unneeded pieces are found by them. */
  readonly pieces: readonly number[];
}

/** A manifest with its sequence in the snapshot stream. */
export interface StoredManifest {
  readonly seq: number;
  readonly manifest: Manifest;
}

/** Limit of the messages of a state, and of the pieces. */
const LIST_MAX = 1_000_000;

/** Encodes a manifest as a message. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  return encodeMessage({
    ...manifest,
    state: manifest.state.map(({ seq, crc }) => [seq, crc]),
  });
}

/** Decodes the manifest in a message. @throws SNAPSHOT_DAMAGED if it cannot be read. */
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
      ...(fields["past"] === undefined ? {} : { past: integerField(fields, "past", 1) }),
      ...(fields["rewind"] === undefined ? {} : { rewind: parseRewind(fields["rewind"]) }),
      seq: integerField(fields, "seq"),
      recordCrc: integerField(fields, "recordCrc"),
      checksum: checksumField(fields, "checksum"),
      state: listField(fields, "state", LIST_MAX).map(toPieceRef),
      pieces: listField(fields, "pieces", LIST_MAX).map((seq) => integerField({ seq }, "seq", 1)),
    };
  } catch (cause) {
    throw new PserverError("SNAPSHOT_DAMAGED", "a manifest cannot be read", {}, { cause });
  }
}

function parseRewind(value: unknown): PassedRewind {
  const fields = asMap(value, "rewind");
  return { id: textField(fields, "id"), generation: integerField(fields, "generation", 1) };
}

/** Parses a reference in a list. @throws BAD_MESSAGE if it is malformed. */
export function toPieceRef(value: unknown): PieceRef {
  const row = Array.isArray(value) ? { seq: value[0] as unknown, crc: value[1] as unknown } : value;
  const fields = asMap(row, "piece");
  return { seq: integerField(fields, "seq", 1), crc: integerField(fields, "crc") };
}
