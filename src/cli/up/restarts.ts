/** Restarts in a row that may fail, or end within {@link STEADY_MS}, before it is not started again. */
export const RESTARTS_MAX = 5;

/** After running for this long, earlier failures do not count any more. */
export const STEADY_MS = 60_000;
