/** Starts in a row that may fail, or end within {@link STEADY_MS}, before what died is given up. */
export const RESTARTS_MAX = 5;

/** What ran this long has proved itself: earlier failures are forgotten. */
export const STEADY_MS = 60_000;
