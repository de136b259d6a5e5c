import { encodeError, PserverError } from "../../protocol/index.ts";

/** The reply, or TOO_LARGE in place of one that the broker would not take. */
export function replyThatFits(reply: Uint8Array, payloadBytesMax: number): Uint8Array {
  if (reply.length <= payloadBytesMax) return reply;
  const text = `the reply has ${reply.length} bytes; the broker takes ${payloadBytesMax}`;
  const details = { expected: payloadBytesMax, received: reply.length };
  return encodeError(new PserverError("TOO_LARGE", text, details));
}
