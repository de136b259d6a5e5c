import { type Msg, type NatsConnection, type Payload, type RequestOptions } from "@nats-io/transport-node";
/** The parts of a connection that a repeated request uses. */
export type RequestConnection = Pick<NatsConnection, "request" | "flush">;
/**
 * Sends a request, and sends it again each second until an answer comes, to whichever copy: a request to a stream
 * without a leader, or with one that hangs, is lost, and its successor hears only what is sent from then on. A copy
 * is sent only after the broker has answered a PING that followed the last one: until then that copy, or its answer,
 * may still be on a slow link.
 * @throws as `request` does, the first error of any copy; a timeout after `timeout` in all, for which nothing was on the
 * link ({@link startAnswerDeadline}).
 */
export declare function requestRepeatedly(connection: RequestConnection, subject: string, payload: Payload | undefined, options: RequestOptions): Promise<Msg>;
/** Sends a request once; the rest as {@link requestRepeatedly}. */
export declare function requestOnce(connection: RequestConnection, subject: string, payload: Payload | undefined, options: RequestOptions): Promise<Msg>;
//# sourceMappingURL=repeated-request.d.ts.map