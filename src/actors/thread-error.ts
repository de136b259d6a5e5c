import { ensureError, errorFromWire, type Fields, type PserverError } from "../protocol/index.ts";

/** Restores an error that ended a thread: its class is lost between threads, its code is not. */
export function fromThread(error: Error): PserverError {
  const { code, details } = error as Error & { code?: unknown; details?: unknown };
  if (typeof code !== "string") return ensureError(error);
  return errorFromWire({ code, message: error.message, details: (details ?? {}) as Fields });
}
