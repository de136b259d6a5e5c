import { type Fields, type Message } from "../codec.ts";
import { type ErrorCode, PserverError } from "../errors.ts";
import { type Fallback } from "./position.ts";
/**
 * Result of one record in the fold: applied, giving the block's `version`, or rejected with a code.
 * `seq` is the journal sequence of the record that settled it.
 */
export interface Outcome {
    readonly n: number;
    readonly seq: number;
    readonly version: number;
    readonly code?: ErrorCode;
    readonly message?: string;
}
/** The outcomes of one trainer's records in one shard, as a message to its inbox. */
export interface Answers {
    readonly shard: number;
    readonly generation: number;
    readonly session: number;
    readonly outcomes: readonly Outcome[];
    /**
     * In the answer to a request about an older journal: what the shard did not keep of that journal and of
     * later ones.
     */
    readonly fallbacks?: readonly Fallback[];
}
/** Asks what became of records, once the shard has folded up to a position. */
export interface OutcomeRequest {
    readonly session: number;
    readonly numbers: readonly number[];
    readonly generation: number;
    readonly seq: number;
}
/**
 * Writes answers as a message. If it would have more than `bytesMax` bytes, the texts of rejections are cut:
 * a client decides by the codes.
 */
export declare function encodeAnswers(answers: Answers, bytesMax?: number): Uint8Array;
/** @throws BAD_MESSAGE if the message does not hold valid answers, or the error that the message carries. */
export declare function parseAnswers(message: Message): Answers;
/** Writes an outcome request as a message. */
export declare function encodeOutcomeRequest(request: OutcomeRequest): Uint8Array;
/** @throws BAD_MESSAGE if the message is not a valid outcome request. */
export declare function parseOutcomeRequest(fields: Fields): OutcomeRequest;
/** Writes an error as a reply. */
export declare function encodeError(error: PserverError): Uint8Array;
/** Throws the error that a reply carries, if it carries one. */
export declare function throwIfError(fields: Fields): void;
/**
 * Returns an outcome as messages and snapshots hold it: `[n, seq, version]`, and of a rejection also code and
 * text.
 */
export declare function outcomeRow(outcome: Outcome): readonly (number | string)[];
/** Reads the outcome in a row; @throws BAD_MESSAGE if it is not valid. */
export declare function parseOutcomeRow(row: unknown): Outcome;
//# sourceMappingURL=outcomes.d.ts.map