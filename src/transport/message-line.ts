import { PserverError, visible } from "../protocol/index.ts";

const SPACE = 0x20;
const RETURN = 0x0d;
const LETTER_I = 0x49;

/** Bytes of a line end, and of what ends a payload. */
const TRAILER_BYTES = 2;

/** CR LF. */
const TRAILER = 0x0d0a;

/** The most bytes of a line: the greeting lists the brokers of a cluster, others name two subjects. */
const GREETING_BYTES_MAX = 2 * 1024 * 1024;
const LINE_BYTES_MAX = 64 * 1024;

/** Bytes of a malformed line that its error shows. */
const SHOWN_BYTES_MAX = 64;

/** Subject, subscription, reply if there is one, bytes of the headers if there are any, bytes in all. */
const MESSAGE = /^MSG [^ \t\r]+ \d{1,15}(?: [^ \t\r]+)? (\d{1,15})$/;
const MESSAGE_WITH_HEADERS = /^HMSG [^ \t\r]+ \d{1,15}(?: [^ \t\r]+)? (\d{1,15}) (\d{1,15})$/;

/** What nothing follows. */
const OTHER = /^(?:PING|PONG|\+OK|-ERR [^ \t\r][^\r]*|INFO \{[^\r]*)$/;

/**
 * Bytes that follow the protocol line between two positions, the second being that of its newline:
 * payload and trailer after `MSG` and `HMSG`, 0 after any other.
 * @throws BAD_MESSAGE for a line that no broker sends. nats.js would print it and then read no more.
 */
export function bytesAfterLine(bytes: Buffer, at: number, newline: number): number {
  checkLineLength(bytes, at, newline);
  if (bytes[newline - 1] !== RETURN) throw malformed("a line that ends in CR LF", bytes, at);
  const line = bytes.toString("latin1", at, newline + 1 - TRAILER_BYTES);
  const size = MESSAGE.exec(line)?.[1];
  if (size !== undefined) return Number(size) + TRAILER_BYTES;
  if (OTHER.test(line)) return 0;
  const [, headerBytes, allBytes] = MESSAGE_WITH_HEADERS.exec(line) ?? [];
  if (Number(headerBytes) <= Number(allBytes)) return Number(allBytes) + TRAILER_BYTES;
  throw malformed("a line of the NATS protocol", bytes, at);
}

/**
 * Passes if a line that begins at a position, and has come up to another one, is not too long.
 * @throws BAD_MESSAGE otherwise.
 */
export function checkLineLength(bytes: Buffer, at: number, end: number): void {
  const bytesMax = isGreeting(bytes, at) ? GREETING_BYTES_MAX : LINE_BYTES_MAX;
  if (end - at > bytesMax) throw malformed(`a line of at most ${bytesMax} bytes`, bytes, at);
}

/** @throws BAD_MESSAGE unless what ends a payload ends at a position. */
export function checkTrailer(bytes: Buffer, end: number): void {
  const at = end - TRAILER_BYTES;
  if (bytes.readUInt16BE(at) !== TRAILER) throw malformed("CR LF after a payload", bytes, at);
}

/** Whether the line at a position is the broker's greeting, or a later one of the same kind. */
export function isGreeting(bytes: Buffer, at: number): boolean {
  return bytes[at] === LETTER_I;
}

/** Whether the subject in the message line at a position begins so; a prefix has no space. */
export function hasSubjectPrefix(bytes: Buffer, at: number, prefix: Buffer): boolean {
  const subject = bytes.indexOf(SPACE, at) + 1;
  return bytes.subarray(subject, subject + prefix.length).equals(prefix);
}

/** The error for what no broker sends. */
export function malformed(expected: string, bytes: Buffer, at: number): PserverError {
  const received = visible(
    bytes.toString("latin1", at, Math.min(bytes.length, at + SHOWN_BYTES_MAX)),
  );
  return new PserverError("BAD_MESSAGE", `broker: expected ${expected}; received ${received}`, {
    expected,
    received,
  });
}
