import { ensureError, type PserverError } from "../../src/protocol/index.ts";

/** The error that work ends with; throws if it ends with none. */
export async function failureOf(work: Promise<unknown>): Promise<PserverError> {
  try {
    await work;
  } catch (error) {
    return ensureError(error);
  }
  throw new Error("expected a failure");
}
