/** Bytes of requests that may wait in one queue, each of one trainer's and of all together. */
export const QUEUED_BYTES = { each: 16 * 1024 * 1024, all: 64 * 1024 * 1024 } as const;

/** What a request that waits counts for beside its own bytes: some 14,000 small ones of one trainer wait. */
export const REQUEST_BYTES = 1024;

/** How long one kind of work may take of one turn of the event loop. */
export const TURN_MS = 4;
