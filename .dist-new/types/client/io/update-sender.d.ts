import { type Allocate } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { Position } from "../../protocol/messages/position.ts";
import type { RecordHeader } from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import { type OutboxCommands, type OutboxListener } from "../core/outbox.ts";
import type { Positions } from "../core/shard-window.ts";
import { type BlockUpdate, type Failure, type UpdateCall, type UpdateSize } from "../core/update-call.ts";
import { type Wire } from "../wire/wire.ts";
/** Returns a failure as an error. */
export declare function toError(failure: Failure): PserverError;
/** Dependencies of UpdateSender. */
interface UpdateSenderDeps {
    readonly wire: Wire;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly positions: Positions;
    readonly inFlightBytesMax?: number;
    /** Called when a host says that the session is over. */
    readonly onSessionEnd: (error: PserverError) => void;
}
/** Options of the updates of one call. */
export interface SendOptions {
    readonly deadline: Deadline;
    /** Whether the call is done when the journal holds every update. */
    readonly stored?: boolean;
    /** Whether updates that came too late for their step are counted instead of failing the call. */
    readonly countsLate?: boolean;
    /** Whether a block that is initialized already counts as applied. */
    readonly countsPresent?: boolean;
}
/** Does the I/O of the outbox: it has the connection, the clock, the timer and the memory for messages. */
export declare class UpdateSender implements OutboxCommands, OutboxListener {
    #private;
    private constructor();
    /** Makes a sender that receives acknowledgements and outcomes, and sends nothing until {@link start}. */
    static open(deps: UpdateSenderDeps): UpdateSender;
    /** Sends on after the connection was lost: it is back, and the broker holds the job that was joined. */
    reconnected(): void;
    /** Bytes of elements without a PubAck. */
    get inFlightBytes(): number;
    /**
     * Sends the updates of one call; resolves when all of them were applied, or stored if that is
     * enough. The arrays behind the sources must not change until then. Returns how many came too late
     * for their step.
     * @throws the first rejection; OUTCOME_UNKNOWN, naming the updates, if the call ends before; what
     * ended the call or kept the updates from being stored if none of them can have been applied.
     */
    send(sources: readonly UpdateSource[], options: SendOptions): Promise<{
        late: number;
    }>;
    /** Sends under this session from now on; numbers begin at 1 again. */
    start(session: number): void;
    /** Sends nothing new until {@link start}. */
    pause(): void;
    /** Stops the timer; nothing is repeated any more. */
    close(): void;
    publish(update: BlockUpdate, session: number, done: number): void;
    repeat(update: BlockUpdate): void;
    release({ slot }: BlockUpdate, isReusable: boolean): void;
    askOutcomes(shard: number, session: number, numbers: readonly number[], at: Position): void;
    ping(sendNumber: number): void;
    setTimer(atMs: number): void;
    callOver(call: UpdateCall): void;
    sessionOver(failure: Failure): void;
}
/** A block of a parameter. */
interface BlockName {
    readonly parameter: string;
    readonly index: number;
}
/** What a record is about: blocks; in a clock, all steps up to one; in a note, no part of the model. */
export type Topic = {
    readonly kind: "blocks";
    readonly blocks: readonly BlockName[];
} | {
    readonly kind: "clock";
    readonly step: number;
} | {
    readonly kind: "note";
};
/** What a record is made from: where it goes, and how its message is made. */
export interface UpdateSource extends UpdateSize {
    readonly subject: string;
    readonly topic: Topic;
    /**
     * Makes the message with this header, in memory of `allocate`. If `namesVersion`, it names the version of
     * the block that a gradient was made from. Copies the tensor's bytes, once.
     */
    draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array;
}
export {};
//# sourceMappingURL=update-sender.d.ts.map