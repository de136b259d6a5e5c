/** Bytes under way at one time in the raw measurements: what the clients of a job allow, too. */
export const WINDOW_BYTES: number = 16 * 1024 ** 2;

/** Bytes a reader of a raw stream asks for ahead: what a host allows each of its connections. */
export const CREDIT_BYTES: number = 32 * 1024 ** 2;
