import { PserverError } from "../../protocol/index.ts";
/** Limits of a shared resource, in units of the caller's choice. */
interface ShareLimits {
    /** The most that one trainer may hold, unless it holds a single larger amount. */
    readonly each: number;
    /** The most that all may hold together. */
    readonly all: number;
}
/**
 * Divides a limited resource among trainers. Invariant: when a trainer takes more, it then holds no more than is left
 * free. So those who hold the most are refused first, and a trainer that holds nothing can always take some: one
 * greedy trainer leaves half free, two leave a third.
 */
export declare class FairShares {
    #private;
    constructor(limits: ShareLimits);
    /** The amount that all hold together. */
    get total(): number;
    /** Gives a trainer more, if the limits allow it; false changes nothing. */
    take(trainer: string, amount: number): boolean;
    /** Takes back what {@link take} gave. */
    giveBack(trainer: string, amount: number): void;
}
/** A task that is to be served now, and its trainer. */
export interface ServedTask<Task> {
    readonly trainer: string;
    readonly task: Task;
}
/**
 * Tasks of many trainers. Each trainer has a queue of its own, and the queues are served in turn, one task at a time:
 * however long one queue is, every other trainer's first task is served within one round.
 */
export declare class FairQueue<Task> {
    #private;
    /** `limits`: limits of the costs of waiting tasks. */
    constructor(limits: ShareLimits);
    /** Number of waiting tasks. */
    get size(): number;
    /** Appends a task to its trainer's queue; false if too much waits already. */
    push(trainer: string, task: Task, cost?: number): boolean;
    /**
     * Removes and returns the task that is next; undefined if none may be served. A trainer that `mayServe` rejects
     * keeps its place.
     */
    next(mayServe?: (trainer: string) => boolean): ServedTask<Task> | undefined;
    /**
     * Charges what a served task took, in time and in bytes sent, whichever is more: others get as much before the
     * trainer's next task.
     */
    charge(trainer: string, workMs: number, bytes?: number): void;
}
/**
 * Limits the time that one kind of work takes in one turn of the event loop, so that timers, above all those that
 * renew leases, and messages of other connections are not delayed.
 */
export declare class TimeSlice {
    #private;
    /** `onNext` is called in the turn after each one in which {@link begin} was called. */
    constructor(lengthMs: number, onNext: () => void);
    /** Notes that work is done in this turn. */
    begin(): void;
    /** Whether further work has to wait for the next turn of the event loop. */
    get isOver(): boolean;
}
/**
 * Limits how many refusals are sent in a period. A request without a reply is sent again after a second. Requests of
 * a trainer that has had its refusals are dropped unread for the rest of the period: its queue is full, and reading
 * would cost more than refusing.
 */
export declare class RefusalBudget {
    #private;
    /** `now`: in milliseconds, of a clock that does not go back. */
    constructor(now?: () => number);
    /** Takes one refusal of a trainer, to be sent; false if none is left. */
    take(trainer: string): boolean;
    /** Whether requests of the trainer with this token in its subjects are to be dropped now. */
    readonly isDropped: (token: string) => boolean;
    /** Begins a new period if the last one is over. Call it in each turn of the event loop. */
    review(): void;
}
/** Bytes of requests that may wait in one queue: of one trainer, and of all together. */
export declare const QUEUED_BYTES: {
    readonly each: number;
    readonly all: number;
};
/** How long one kind of work may take in one turn of the event loop. */
export declare const SLICE_MS = 4;
/** Returns the reply, or TOO_LARGE in place of one that the broker would not take. */
export declare function replyThatFits(reply: Uint8Array, payloadBytesMax: number): Uint8Array;
/** A request that has arrived and is to be answered. */
interface FairRequest {
    /** Key of the trainer or host that asks; a host's differs from any trainer's. */
    readonly from: string;
    /** Valid during {@link FairServer.take} only. */
    readonly data: Uint8Array;
    /** Answers the request, now or when the promise settles; must not fail. `data` is valid during the call only. */
    readonly run: (data: Uint8Array) => Promise<void> | void;
    /** Sends an error in place of the answer. */
    readonly refuse: (error: PserverError) => void;
}
/** Options of a {@link Lane}. */
export interface LaneOptions {
    /** Requests in work at one time, and how many of them may be of one trainer; any number by default. */
    readonly atOnce?: number;
    readonly atOnceEach?: number;
    /** Cost of a waiting request besides its own bytes, of the 16 MiB that one trainer has. */
    readonly requestBytes?: number;
    /** Waiting time that a refusal names. */
    readonly retryAfterMs?: number;
}
/**
 * Decides when each request is worked on, whoever receives it. A request runs as it arrives while the time slice of
 * this turn of the event loop lasts and its lane admits it; others wait, and are taken from each trainer in turn. A
 * trainer may not have more waiting than is left free for others: its requests are then refused with BUSY, a few
 * times, and dropped unread for a while. The lanes, kinds of requests with their own limits, are served in their
 * order.
 */
export declare class FairServer {
    #private;
    /** `refusals`: limits how often a trainer is refused; shared with the connection. */
    constructor(refusals: RefusalBudget, lanes?: readonly LaneOptions[]);
    /** Works on a request of the lane with this index now or later, or refuses it with BUSY. */
    take(request: FairRequest, place?: number): void;
    /** Refuses a request, unless its trainer has had its refusals of this period. */
    refuse(trainer: string, send: () => void): void;
    /** Refuses waiting requests with BUSY, begins none any more, and waits for those in work. */
    close(): Promise<void>;
}
export {};
//# sourceMappingURL=fair-server.d.ts.map