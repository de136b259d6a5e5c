import type { ErrorCode } from "../protocol/errors.ts";

/** What a client has done since it joined. Bytes are of messages, without subjects and what NATS adds. */
export interface ClientStats {
  /** Calls that have ended. */
  readonly calls: number;
  /** Of these, the calls that have failed, by the codes of their errors. */
  readonly failed: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Records that were sent, each counted once. */
  readonly records: number;
  /** How often a record was sent again. */
  readonly resent: number;
  /** Records of which a guard has clipped a gradient or tensor, and that one has set aside: they were not applied. */
  readonly clipped: number;
  readonly setAside: number;
  /** Requests for values. */
  readonly reads: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** How often a connection was lost and came back; a client has two. */
  readonly reconnects: number;
}

/** Variable that names a directory in which clients leave their counts when they are closed, as `pserver run` asks. */
export const STATS_VARIABLE = "PSERVER_STATS_DIR";
