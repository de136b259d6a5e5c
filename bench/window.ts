/** Bytes in flight at one time in the raw measurements, as many as clients of a job allow. */
export const WINDOW_BYTES: number = 16 * 1024 ** 2;

/** Bytes a reader of a raw stream asks for ahead: what a host allows each of its connections. */
export const CREDIT_BYTES: number = 32 * 1024 ** 2;
