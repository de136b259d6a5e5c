import { sealMessage } from "../../src/protocol/codec.ts";

/** Bytes written as hex, in which blanks do not count. */
export function hex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
}

/**
 * A message with the right envelope, version and checksum, and after them whatever bytes are given:
 * what a sender can make that knows the format and means no good. `count`: entries in `rest`.
 */
export function rawMessage(count: number, rest: Uint8Array | string): Uint8Array {
  const tail = typeof rest === "string" ? hex(rest) : rest;
  const header = hex("80 a3637263 ce00000000 a176 01");
  const bytes = new Uint8Array(header.length + tail.length);
  bytes.set(header);
  bytes.set(tail, header.length);
  bytes[0] = 0x80 + count + 2;
  return sealMessage({ bytes, data: tail });
}
