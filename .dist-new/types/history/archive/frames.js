import { decodeMessage, draftMessage, integerField, listField, numberField, PserverError, SHARDS_MAX, sealMessage, textField, toSynchronization, wordField, } from "../../protocol/index.js";
/** Bytes of all entries of a frame except lists and data; the longest entry is a subject. */
const ENTRIES_BYTES = 32 * 1024;
/** Bytes of a sequence in a list. */
const PIECE_BYTES = 9;
const KINDS = ["job", "manifest", "piece", "record", "gap", "tape", "end"];
/** Limit of the pieces that one manifest names. */
const PIECES_MAX = 1_000_000;
/** Limit of a subject, of the same order as the broker's limit of a control line. */
const SUBJECT_MAX = 4_096;
/** Encodes a frame as a message, in memory of `allocate`, by default in new memory. */
export function encodeFrame(frame, allocate) {
    if (!("data" in frame)) {
        return sealMessage(draftMessage({ ...frame }, undefined, allocate));
    }
    const { data, ...fields } = frame;
    const draft = draftMessage(fields, data.length, allocate);
    draft.data.set(data);
    return sealMessage(draft);
}
/** Returns the most bytes that the message of a frame can have. */
export function messageBytesMax(frame) {
    const data = "data" in frame ? frame.data.length : 0;
    const pieces = frame.kind === "manifest" ? frame.pieces.length * PIECE_BYTES : 0;
    return ENTRIES_BYTES + pieces + data;
}
/**
 * Decodes the frame in a message; its `data` is a view of `bytes`.
 * @throws BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION if it is none.
 */
export function decodeFrame(bytes) {
    const { fields, data } = decodeMessage(bytes);
    const kind = wordField(fields, "kind", KINDS);
    const count = (name, least = 0) => integerField(fields, name, least);
    switch (kind) {
        case "job":
            return {
                kind,
                job: textField(fields, "job"),
                shards: integerField(fields, "shards", 1, SHARDS_MAX),
                synchronization: toSynchronization(fields["synchronization"]),
                archive: textField(fields, "archive"),
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
function shardField(fields) {
    return integerField(fields, "shard", 0, SHARDS_MAX - 1);
}
function timeField(fields) {
    const timeMs = numberField(fields, "timeMs");
    if (Number.isFinite(timeMs))
        return timeMs;
    throw new PserverError("BAD_MESSAGE", `timeMs: expected a finite number; received ${timeMs}`);
}
//# sourceMappingURL=frames.js.map