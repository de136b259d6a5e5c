/** Result of a check. `warn`: works, but not as it should; `skip`: this user may not do the check. */
export type CheckStatus = "ok" | "warn" | "fail" | "skip";

/** One line of the doctor's report. */
export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found. */
  readonly message: string;
  /** What to do about it; absent when all is well. */
  readonly advice?: string;
}

/** A check that passed. */
export function ok(name: string, message: string): Check {
  return { name, status: "ok", message };
}

/** A check of something that works, but not as it should. */
export function warn(name: string, message: string, advice: string): Check {
  return { name, status: "warn", message, advice };
}

/** A check of something that keeps the job from working. */
export function fail(name: string, message: string, advice: string): Check {
  return { name, status: "fail", message, advice };
}

/** A check that this user may not do. */
export function skip(name: string, reason: string): Check {
  return { name, status: "skip", message: `not checked: ${reason}` };
}
