import type { ErrorCode, ErrorDetails } from "../../protocol/errors.ts";
import type { Position } from "../../protocol/position.ts";

/**
 * An error as the core handles it: it decides by the code and by the numbers below, and hands the rest
 * back as it came. The shell's `PserverError` is one.
 */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

/** The position that a failure says was expected; what it does not say is 0. */
export function expectedPosition({ details }: Failure): Position {
  const { generation, seq } = (details["expected"] ?? {}) as Partial<Position>;
  return {
    generation: typeof generation === "number" ? generation : 0,
    seq: typeof seq === "number" ? seq : 0,
  };
}

/** The session that a failure says is over; 0 if it says none. */
export function receivedSession({ details }: Failure): number {
  const { received } = details;
  return typeof received === "number" ? received : 0;
}
