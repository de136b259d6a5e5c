import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { NamedTensor } from "../pull/pulled-tensor.ts";
import type { Into } from "../pull/puller.ts";
import type { Ack } from "../push/updates.ts";
import type { CallOptions } from "../timing/deadline.ts";

/** Options of a call that reads parameters. */
export interface ReadOptions extends CallOptions {
  /** Transfers float32 values in half the bytes, rounded as the encoding defines. */
  readonly encoding?: Encoding;
}

/** Options of `Client.getParams`. */
export interface PullOptions extends ReadOptions {
  /** Arrays to read into, by parameter name. */
  readonly into?: Into;
  /**
   * Results of earlier calls, whose arrays nobody has changed: only blocks that have changed since are sent. A
   * parameter of which nothing has changed is returned as the same result; otherwise its unchanged blocks are
   * copied from the known array, which stays as it is unless it is also in `into`. Results of another encoding
   * or initialization do not count, nor do copies of results.
   */
  readonly known?: readonly NamedTensor[];
}

/** Options of a call that changes parameters. */
export interface UpdateOptions extends CallOptions {
  /**
   * `applied` (default): the call is done when the shards' owners have applied every block update.
   * `stored`: when the journal holds every block update; a later rejection is not reported.
   */
  readonly ack?: Ack;
}

/** Options of an update whose elements can travel encoded. */
export interface PushOptions extends UpdateOptions {
  /** Transfers float32 elements in half the bytes, rounded to nearest as the encoding defines. */
  readonly encoding?: Encoding;
}

/** Options of `Client.sendGrads`. */
export interface GradOptions extends PushOptions {
  /** Overrides the learning rate of every parameter in the call. */
  readonly learningRate?: number;
  /**
   * Whether this call is the last one of the trainer's step, in a job that is synchronized by steps;
   * true by default. Otherwise more calls, and then `Client.endStep`, follow.
   */
  readonly endStep?: boolean;
}

/** Options of `Client.beginInit`. */
export interface BeginOptions extends CallOptions {
  /** Whether to wait while another trainer initializes; true by default. */
  readonly wait?: boolean;
}
