import { parseSettings, type StoredSettings } from "../../actors/job/job-settings.ts";
import {
  type Allocate,
  decodeMessage,
  draftMessage,
  type Fields,
  integerField,
  listField,
  numberField,
  PserverError,
  SHARDS_MAX,
  type Synchronization,
  sealMessage,
  textField,
  toSynchronization,
  wordField,
} from "../../protocol/index.ts";

/** The first frame of every file, and of every part of a recorded file: the facts of its job. */
export interface JobFrame {
  readonly kind: "job";
  readonly job: string;
  readonly shards: number;
  readonly synchronization: Synchronization;
  /** Identity of the archive that the file is a part of; "" in a recorded file. */
  readonly archive: string;
  /** All settings of the job; in the first frame of an archive or a recorded file, if they are known. */
  readonly settings?: StoredSettings;
}

/** A manifest as the broker stored it; the frames of some of its pieces follow. */
export interface ManifestFrame {
  readonly kind: "manifest";
  readonly shard: number;
  /** Sequence in the snapshot stream. */
  readonly seq: number;
  readonly timeMs: number;
  /** Sequences of the pieces and state parts whose frames follow, in their order. */
  readonly pieces: readonly number[];
  /** The message of the snapshot stream. */
  readonly data: Uint8Array;
}

/** A piece of a snapshot, or a part of its state, as the broker stored it. */
interface PieceFrame {
  readonly kind: "piece";
  readonly shard: number;
  /** Sequence in the snapshot stream. */
  readonly seq: number;
  /** The message of the snapshot stream. */
  readonly data: Uint8Array;
}

/** A record of a journal as the broker stored it. */
export interface RecordFrame {
  readonly kind: "record";
  readonly shard: number;
  readonly generation: number;
  readonly seq: number;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly subject: string;
  /** The payload unchanged, even if it is unreadable. */
  readonly data: Uint8Array;
}

/** A message of a shard's tape as the broker stored it. */
export interface TapeFrame {
  readonly kind: "tape";
  readonly shard: number;
  /** Number of the message among those of the shard's tape that the archive has: 1, 2, 3, …. */
  readonly number: number;
  /** Sequence in the stream of the job's tape. */
  readonly seq: number;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
  /** The message of the tape. */
  readonly data: Uint8Array;
}

/** Records of a journal that the archive lacks: they were trimmed, or could not be read, before they were copied. */
interface GapFrame {
  readonly kind: "gap";
  readonly shard: number;
  readonly generation: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** The last frame of a complete file. */
export interface EndFrame extends Totals {
  readonly kind: "end";
}

/** Sums of the frames before the end. */
export interface Totals {
  readonly frames: number;
  readonly records: number;
  readonly pieces: number;
  /** Bytes of the file before this frame. */
  readonly bytes: number;
  /** CRC-32 of the headers of all frames, each followed by the checksum of its message. */
  readonly digest: number;
}

/** One frame of an archive's file or of a recorded file. */
export type Frame =
  | JobFrame
  | ManifestFrame
  | PieceFrame
  | RecordFrame
  | GapFrame
  | TapeFrame
  | EndFrame;

/** Bytes of all entries of a frame except lists and data; the longest entry is a subject. */
const ENTRIES_BYTES = 32 * 1024;

/** Bytes of a sequence in a list. */
const PIECE_BYTES = 9;

const KINDS = ["job", "manifest", "piece", "record", "gap", "tape", "end"] as const;

/** Limit of the pieces that one manifest names. */
const PIECES_MAX = 1_000_000;

/** Limit of a subject, of the same order as the broker's limit of a control line. */
const SUBJECT_MAX = 4_096;

/** Encodes a frame as a message, in memory of `allocate`, by default in new memory. */
export function encodeFrame(frame: Frame, allocate?: Allocate): Uint8Array {
  if (!("data" in frame)) {
    return sealMessage(draftMessage({ ...frame }, undefined, allocate));
  }
  const { data, ...fields } = frame;
  const draft = draftMessage(fields, data.length, allocate);
  draft.data.set(data);
  return sealMessage(draft);
}

/** Returns the most bytes that the message of a frame can have. */
export function messageBytesMax(frame: Frame): number {
  const data = "data" in frame ? frame.data.length : 0;
  const pieces = frame.kind === "manifest" ? frame.pieces.length * PIECE_BYTES : 0;
  return ENTRIES_BYTES + pieces + data;
}

/**
 * Decodes the frame in a message; its `data` is a view of `bytes`.
 * @throws BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION if it is none.
 */
export function decodeFrame(bytes: Uint8Array): Frame {
  const { fields, data } = decodeMessage(bytes);
  const kind = wordField(fields, "kind", KINDS);
  const count = (name: string, least = 0): number => integerField(fields, name, least);
  switch (kind) {
    case "job":
      return {
        kind,
        job: textField(fields, "job"),
        shards: integerField(fields, "shards", 1, SHARDS_MAX),
        synchronization: toSynchronization(fields["synchronization"]),
        archive: textField(fields, "archive"),
        ...(fields["settings"] === undefined
          ? {}
          : { settings: parseSettings(fields["settings"]) }),
      };
    case "end":
      return {
        ...{ kind, frames: count("frames"), records: count("records"), pieces: count("pieces") },
        ...{ bytes: count("bytes"), digest: count("digest") },
      };
    case "manifest": {
      const pieces = listField(fields, "pieces", PIECES_MAX);
      return {
        ...{ kind, shard: shardField(fields), seq: count("seq", 1), timeMs: timeField(fields) },
        pieces: pieces.map((seq) => integerField({ seq }, "seq", 1)),
        data,
      };
    }
    case "piece":
      return { kind, shard: shardField(fields), seq: count("seq", 1), data };
    case "record":
      return {
        ...{ kind, shard: shardField(fields), generation: count("generation", 1) },
        ...{ seq: count("seq", 1), timeMs: timeField(fields) },
        subject: textField(fields, "subject", SUBJECT_MAX),
        data,
      };
    case "gap":
      return {
        ...{ kind, shard: shardField(fields), generation: count("generation", 1) },
        ...{ firstSeq: count("firstSeq", 1), lastSeq: count("lastSeq", 1) },
      };
    case "tape":
      return {
        ...{ kind, shard: shardField(fields), number: count("number", 1), seq: count("seq", 1) },
        timeMs: timeField(fields),
        data,
      };
  }
}

function shardField(fields: Fields): number {
  return integerField(fields, "shard", 0, SHARDS_MAX - 1);
}

function timeField(fields: Fields): number {
  const timeMs = numberField(fields, "timeMs");
  if (Number.isFinite(timeMs)) return timeMs;
  throw new PserverError("BAD_MESSAGE", `timeMs: expected a finite number; received ${timeMs}`);
}
