import type { Failure } from "./failure.ts";

/** A lifecycle request of this trainer, which is asked under whatever session is the current one. */
export interface SessionRequest {
  /** Chosen by the shell. */
  readonly id: number;
  /** How often it has found its session ended. */
  rejoins: number;
  /** The SUPERSEDED that it waits with until it is known whether that is of an earlier session. */
  superseded: Failure | undefined;
}

/** A request that has not been answered. */
export function newSessionRequest(id: number): SessionRequest {
  return { id, rejoins: 0, superseded: undefined };
}
