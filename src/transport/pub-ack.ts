import { asMap, type Fields, integerField, textField } from "../protocol/index.ts";
import { parseJson } from "./parse-json.ts";

/** JetStream's answer to a published message: where it is stored, or why it is not. */
export type PubAck =
  | { readonly kind: "stored"; readonly stream: string; readonly seq: number }
  | { readonly kind: "refused"; readonly error: PubAckError };

/** Why a message is not stored: `code` as in HTTP, `errorCode` one of `JETSTREAM_ERRORS`; 0 if absent. */
export interface PubAckError {
  readonly code: number;
  readonly errorCode: number;
  readonly description: string;
}

const text = new TextDecoder();

/**
 * Reads JetStream's answer: JSON `{stream, seq}` or `{error}`.
 * @throws BAD_MESSAGE if it is neither.
 */
export function parsePubAck(bytes: Uint8Array): PubAck {
  const ack = asMap(parseJson(text.decode(bytes), "PubAck"), "PubAck");
  if (ack["error"] === undefined) {
    const seq = integerField(ack, "seq", 1);
    return { kind: "stored", stream: textField(ack, "stream"), seq };
  }
  return { kind: "refused", error: parsePubAckError(asMap(ack["error"], "PubAck error")) };
}

/** An error that JetStream reports; a broker may leave out any part of it. @throws BAD_MESSAGE. */
export function parsePubAckError(fields: Fields): PubAckError {
  const error = { code: 0, err_code: 0, description: "", ...fields };
  return {
    code: integerField(error, "code"),
    errorCode: integerField(error, "err_code"),
    description: textField(error, "description", Number.POSITIVE_INFINITY),
  };
}
