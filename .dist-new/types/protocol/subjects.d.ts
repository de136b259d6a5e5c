/** Verbs of trainers' journal records about one block; `clock`, `batch` and `note` name none. */
export declare const TRAINER_VERBS: readonly ["init", "push", "set"];
/** One of {@link TRAINER_VERBS}. */
export type TrainerVerb = (typeof TRAINER_VERBS)[number];
/** Verbs of hosts' journal records. */
export declare const HOST_VERBS: readonly ["rules", "members", "declare", "drop", "floor", "sessions", "forget"];
/** One of {@link HOST_VERBS}. */
export type HostVerb = (typeof HOST_VERBS)[number];
/** Verbs of lifecycle requests. */
export declare const LIFECYCLE_VERBS: readonly ["join", "renew", "leave", "begin", "declare", "create", "finish", "abort", "enter", "exit", "status"];
/** One of {@link LIFECYCLE_VERBS}. */
export type LifecycleVerb = (typeof LIFECYCLE_VERBS)[number];
/** Verbs of control requests; one host of the queue group answers. */
export declare const CONTROL_VERBS: readonly ["save", "stop", "snapshot", "hosts", "versions"];
/** One of {@link CONTROL_VERBS}. */
export type ControlVerb = (typeof CONTROL_VERBS)[number];
/** Verbs of requests that hosts send to the owner of a shard. */
export declare const OWNER_VERBS: readonly ["check", "pull", "snapshot", "status", "memory", "versions", "trainers", "digest"];
/** One of {@link OWNER_VERBS}. */
export type OwnerVerb = (typeof OWNER_VERBS)[number];
/** Returns whether `text` is one of a list of words. */
export declare function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word;
/** A parsed journal subject: the sender, the verb, and the block if it names one. */
export type LogSubject = {
    by: "trainer";
    shard: number;
    trainer: string;
    verb: TrainerVerb;
    parameter: string;
    index: number;
} | {
    by: "clock";
    shard: number;
    trainer: string;
} | {
    by: "batch";
    shard: number;
    trainer: string;
} | {
    by: "note";
    shard: number;
    trainer: string;
} | {
    by: "host";
    shard: number;
    verb: HostVerb;
};
/**
 * The subjects, streams and buckets of one job. Only this class knows how they are spelled: names are passed
 * in and returned unescaped.
 */
export declare class JobSubjects {
    #private;
    readonly job: string;
    /**
     * Makes the subjects of a job. `acrossAccounts`: requests may come from another account of the broker,
     * which rewrites their reply subjects.
     * @throws BAD_NAME if the job's name is not valid.
     */
    constructor(job: string, acrossAccounts?: boolean);
    /** Subject of a trainer's journal record about a block. */
    log(shard: number, trainer: string, verb: TrainerVerb, parameter: string, index: number): string;
    /** Subject of the journal record that ends a trainer's step. */
    clock(shard: number, trainer: string): string;
    /** Subject of a trainer's journal record about many blocks. */
    batch(shard: number, trainer: string): string;
    /** Subject of the journal record of a trainer's note. */
    note(shard: number, trainer: string): string;
    /** Subject of a host's journal record. */
    hostLog(shard: number, verb: HostVerb): string;
    /** Common prefix of the subjects of all journal records. */
    logPrefix(): string;
    /** Subjects that a shard's journal stream captures. */
    shardLog(shard: number): string;
    /** Subject of a trainer's `pull` request to a block actor. */
    pull(parameter: string, index: number, trainer: string): string;
    /** Subscription of a block actor. */
    block(parameter: string, index: number): string;
    /** Subscription to the pulls of all blocks of the job. */
    allPulls(): string;
    /** Reads the block in a subject that {@link allPulls} matches; undefined if it names none. */
    parsePull(subject: string): {
        parameter: string;
        index: number;
    } | undefined;
    /** Subject of a trainer's request for the outcomes of its records in a shard. */
    outcome(shard: number, trainer: string): string;
    /** Subject of a trainer's request that waits for a step to close in a shard. */
    step(shard: number, trainer: string): string;
    /** Subject of a trainer's request for the values of many blocks of a shard. */
    read(shard: number, trainer: string): string;
    /** Subject of a host's request to the owner of a shard. */
    owner(shard: number, host: string, verb: OwnerVerb): string;
    /** Subscriptions of a shard's owner besides those of its blocks. */
    shardRequests(shard: number): {
        outcome: string;
        step: string;
        read: string;
        owner: string;
    };
    /** Subject of a trainer's lifecycle request. */
    lifecycle(trainer: string, verb: LifecycleVerb): string;
    /** Subscription of the hosts' queue group to lifecycle requests. */
    allLifecycle(): string;
    /** Subject of a control request from a trainer or an operator. */
    control(trainer: string, verb: ControlVerb): string;
    /** Subscription of every host to requests that end a save. */
    allStops(): string;
    /** Subscription of the hosts' queue group to control requests. */
    allControl(): string;
    /** Subject that the stream of an abandoned journal captures; nobody publishes to it. */
    leftJournal(shard: number, generation: number): string;
    /** Subject of the manifests of a shard's snapshots. */
    manifest(shard: number): string;
    /** Subject of a part of the fold's state in a snapshot. */
    snapshotState(shard: number, part: number): string;
    /** Subject of a block's values (`slot` 0), or of one of its optimizer slots, in a snapshot. */
    piece(shard: number, parameter: string, index: number, slot: number): string;
    /** All subjects of one shard in the snapshot stream. */
    shardSnapshots(shard: number): string;
    /** Subjects that the snapshot stream captures. */
    allSnapshots(): string;
    /** Subject of a shard's part of the job's tape. */
    tape(shard: number): string;
    /** Subjects that the stream of the tape captures. */
    allTapes(): string;
    /** Inbox prefix of a trainer, without a final dot. Hosts answer a trainer nowhere else. */
    inbox(trainer: string): string;
    /** Inbox prefix of a host. No trainer's id is escaped as `=host`. */
    hostInbox(host: string): string;
    /** Returns whether a reply subject lies under the inbox of the trainer with this id. */
    isTrainerInbox(reply: string, trainer: string): boolean;
    /**
     * Returns whether a request of this trainer may be answered at `reply`. The subject lies below the
     * trainer's own inbox or, in a job across accounts only, is one that the broker maps back into the account
     * of the request. Such a subject does not tell which trainer it leads to, so a job of one account takes
     * none.
     */
    mayAnswer(reply: string, trainer: string): boolean;
    /** Returns whether the broker made up this reply subject for a request from another of its accounts. */
    isOfOtherAccount(reply: string): boolean;
    /** Returns whether a reply subject lies under the inbox of the host with this id. */
    isHostInbox(reply: string, host: string): boolean;
    /**
     * Stream of a shard's journal. From generation 2 on the generation is part of the name: a PubAck names the
     * stream, and so the generation of its sequence number.
     */
    journalStream(shard: number, generation: number): string;
    /**
     * Reads shard and generation in the name of a journal stream of this job.
     * @throws BAD_MESSAGE if the stream is not a journal of this job.
     */
    parseJournalStream(stream: string): {
        shard: number;
        generation: number;
    };
    /** Stream of the job's snapshots. */
    snapshotStream(): string;
    /** Stream of the job's tape. */
    tapeStream(): string;
    /** Stream that is created and removed again to find out whether the broker has storage left. */
    storageProbeStream(): string;
    /** Subject that {@link storageProbeStream} captures; nobody publishes to it. */
    storageProbe(): string;
    /** KV bucket of the job's entries. */
    bucket(): string;
    /** KV bucket of the leases; its entries expire. */
    leaseBucket(): string;
    /**
     * Parses a journal subject of this job.
     * @throws BAD_MESSAGE or BAD_NAME if the subject is not one.
     */
    parseLog(subject: string): LogSubject;
    /**
     * Reads the sender's id and the verb of a request whose subject ends in `<id>.<verb>`.
     * @throws BAD_NAME if the id is not an escaped name.
     */
    parseSender(subject: string): {
        id: string;
        verb: string;
    };
}
/** Returns the name of the stream that keeps a KV bucket. */
export declare function bucketStream(bucket: string): string;
/** Returns the job that a stream belongs to, by its name; undefined for a stream of something else. */
export declare function jobOfStream(stream: string): string | undefined;
//# sourceMappingURL=subjects.d.ts.map