import type { UpdateEvent } from "./describe-record.ts";
/** What a tape message covers. */
export interface TapeSpan {
    readonly generation: number;
    /** Sequence of the first record that the message has lines of. */
    readonly from: number;
    /**
     * Up to this record the tape has all lines, with this message and those before it; `from` − 1 if lines of the first
     * record are missing.
     */
    readonly to: number;
}
/** The decoded lines of a tape message. */
export interface TapeMessage extends TapeSpan {
    readonly events: readonly UpdateEvent[];
}
/** Reads what a tape message covers. @throws BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION. */
export declare function tapeSpan(bytes: Uint8Array): TapeSpan;
/**
 * Decodes the updates in a tape message of a shard.
 * @throws BAD_MESSAGE if it is malformed, BAD_CHECKSUM if a bit has changed, BAD_VERSION if this program lacks the
 * format of its lines.
 */
export declare function decodeTape(bytes: Uint8Array, shard: number): TapeMessage;
//# sourceMappingURL=tape-decoder.d.ts.map