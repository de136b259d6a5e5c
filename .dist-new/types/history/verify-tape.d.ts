import { type WireError } from "../protocol/index.ts";
import { type ShardHistory } from "./source.ts";
/** Result about the tape of a shard. */
export interface TapeVerification {
    /** Number of messages read. */
    readonly messages: number;
    /** For each message that cannot be read, and for each range of records without lines, what is wrong. */
    readonly problems: readonly WireError[];
}
/**
 * Reads the tape of a shard from its beginning, and finds the messages that cannot be read, and the records of which
 * it has no lines: before, between and after its messages, up to the newest snapshot. The tape must have the lines of
 * all records that a snapshot covers, except for the oldest, which it drops at its limit.
 * @throws BAD_VERSION for lines of a format that this program lacks; errors of the source if it cannot be read now;
 * the reason of the signal.
 */
export declare function verifyTape(history: ShardHistory, signal: AbortSignal): Promise<TapeVerification>;
//# sourceMappingURL=verify-tape.d.ts.map