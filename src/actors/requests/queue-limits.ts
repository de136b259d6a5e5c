/** Bytes of requests that may wait in one queue: of one trainer, and of all together. */
export const QUEUED_BYTES = { each: 16 * 1024 * 1024, all: 64 * 1024 * 1024 } as const;

/** Cost of a waiting request besides its own bytes: some 14,000 small ones of one trainer fit. */
export const REQUEST_BYTES = 1024;

/** How long one kind of work may take in one turn of the event loop. */
export const TURN_MS = 4;
