import { PserverError } from "../../protocol/errors.ts";

/** The error of whoever names a job that the broker does not hold. */
export function noSuchJob(job: string): PserverError {
  const message = `the broker holds no job ${job}: "pserver jobs" lists those that it holds`;
  return new PserverError("BAD_NAME", message, { job });
}
