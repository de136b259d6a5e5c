const SPACE = 0x20;
const DIGIT_0 = 0x30;
const LETTER_H = 0x48;
const LETTER_M = 0x4d;
const TRAILER_BYTES = 2;

/**
 * Bytes that follow the protocol line between two positions, the second being that of its newline:
 * payload and trailer after `MSG` and `HMSG`, 0 after any other.
 */
export function bytesAfterLine(bytes: Buffer, at: number, newline: number): number {
  const first = bytes[at];
  if (first !== LETTER_M && first !== LETTER_H) return 0;
  // The size is the last number of the line.
  let size = 0;
  let scale = 1;
  for (let i = newline - TRAILER_BYTES; i > at && bytes[i] !== SPACE; i--) {
    size += ((bytes[i] ?? DIGIT_0) - DIGIT_0) * scale;
    scale *= 10;
  }
  return size + TRAILER_BYTES;
}

/** Whether the subject in the message line at a position begins so; a prefix has no space. */
export function hasSubjectPrefix(bytes: Buffer, at: number, prefix: Buffer): boolean {
  const subject = bytes.indexOf(SPACE, at) + 1;
  return bytes.subarray(subject, subject + prefix.length).equals(prefix);
}
