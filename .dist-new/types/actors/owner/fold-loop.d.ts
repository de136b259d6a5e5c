import { PserverError } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import { type JournalGap } from "../journal/journal-check.ts";
import { type JournalReader } from "../journal/journal-reader.ts";
import { type RecordCopy } from "../journal/mismatched-records.ts";
import { type ReplicaDamage } from "../journal/replicas.ts";
import type { LocatedJournal } from "./owned-journal.ts";
/** Why a {@link FoldQueue} stopped folding. */
type FoldStop = 
/** All queued records are folded, or the owner does not let it fold now. */
{
    readonly kind: "idle";
}
/** Records are missing before the next queued one. */
 | {
    readonly kind: "gap";
    readonly gap: JournalGap;
}
/** The next record does not match its checksum and has to be delivered again. */
 | {
    readonly kind: "reread";
}
/** Folding cannot go on. */
 | {
    readonly kind: "failed";
    readonly error: PserverError;
    readonly broker: string | undefined;
};
/** What a {@link FoldQueue} asks and tells. */
interface FoldQueueEvents extends Pick<FoldLoopEvents, "mayFold" | "onSettled"> {
    /**
     * Called when a record is folded that another broker had delivered with a wrong checksum; `isSame` if with the
     * same bytes.
     */
    onReread(seq: number, broker: string, isSame: boolean): void;
}
/**
 * Folds the records of a journal in order, each as soon as it may, and tells what has to happen before the next one.
 * Does no I/O.
 *
 * A record that does not match its checksum is folded, as unreadable, only when it has come twice with the same
 * bytes: then it is stored like that, and every owner folds the same.
 */
export declare class FoldQueue {
    #private;
    constructor(shard: Pick<Shard, "seq" | "apply">, events: FoldQueueEvents);
    /** Sequence of the first record that has to be read after {@link clear}. */
    get startSeq(): number;
    /** Number of records folded so far. */
    get foldedRecords(): number;
    /** When the broker stored the last of them, in milliseconds since 1970; undefined before the first. */
    get lastRecordMs(): number | undefined;
    /** Bytes of those records in the stream. */
    get foldedBytes(): number;
    /** Adds a record as it was delivered; {@link keepPayload} must follow once {@link fold} was called. */
    add(record: RecordCopy): void;
    /** Copies the payload of the record added last if it is still queued: its buffer is only lent. */
    keepPayload(record: RecordCopy): void;
    /** Forgets the queued records; they have to be read again. */
    clear(): void;
    /** Folds queued records as far as possible. */
    fold(): FoldStop;
    /**
     * Remembers which queued records do not match their checksums, to compare them when they are
     * delivered again; false if one of them never comes twice with the same bytes.
     */
    rememberMismatched(): boolean;
    /** The brokers whose copies the queued records are from; none unless several brokers have copies. */
    get brokers(): ReadonlySet<string>;
}
/** Requests and reports of a {@link FoldLoop} to whoever owns the shard. */
export interface FoldLoopEvents {
    /** Returns, before each reading, where the journal continues; may replace the journal. */
    locate(): Promise<LocatedJournal>;
    /** Whether the fold may go on; asked before each record, and again after {@link FoldLoop.poke}. */
    mayFold(): boolean;
    /** Takes the answer to a record that was folded. */
    onSettled(settled: RecordAnswer, record: JournalRecord): void;
    /** Called soon after records were folded, once for several, with their bytes in the stream. */
    onAdvanced(bytes: number): void;
    /**
     * Called when records are missing before the next one. Folding continues when it resolves, ends
     * after a final error, and starts with a new reading of the journal after any other error.
     */
    onGap(gap: JournalGap): Promise<void>;
    /** Called when one copy of a replicated journal is damaged and another one is used. */
    onReplicaDamaged(damage: ReplicaDamage): void;
    /**
     * Called once when folding cannot go on. `copy`: what is wrong with the copy of a replicated journal that was
     * folded, if another copy may be what was folded before.
     */
    onFailure(error: PserverError, copy?: ReplicaDamage): void;
}
/** Dependencies of {@link FoldLoop}. */
interface FoldLoopDeps {
    /** Number of the shard. */
    readonly number: number;
    readonly shard: Pick<Shard, "seq" | "apply" | "expect">;
    readonly reader: JournalReader;
    readonly coalescer: Coalescer;
    readonly events: FoldLoopEvents;
}
/** Reads the journal of a shard into its {@link FoldQueue}, and does what the queue asks for. */
export declare class FoldLoop {
    #private;
    constructor(deps: FoldLoopDeps);
    /** When the broker stored the last folded record, in milliseconds since 1970; undefined before the first. */
    get lastRecordMs(): number | undefined;
    /** Starts to read. */
    start(): Promise<void>;
    /** Reads again after the connection was lost. */
    reconnected(): Promise<void>;
    /** Folds what is queued as far as possible. */
    poke(): void;
    /** Stops folding at once. */
    stop(): void;
}
/**
 * Joins the work that the shards of a worker have after records, above all their answers: each write to the broker
 * costs as much as folding a small record. Work that comes alone runs in the same turn of the event loop; where
 * records follow each other closely, it is delayed by about a millisecond.
 */
export declare class Coalescer {
    #private;
    constructor(now?: () => number);
    /** Runs `work` soon, in the order of the calls. */
    soon(work: () => void): void;
}
export {};
//# sourceMappingURL=fold-loop.d.ts.map