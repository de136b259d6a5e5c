import { mismatch, visible } from "../protocol/errors.js";
const SPACE = 0x20;
const RETURN = 0x0d;
const TAB = 0x09;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const DOT = 0x2e;
const LETTER_I = 0x69;
/** Bit that is set in small letters: words of the protocol may have either case. */
const SMALL_BIT = 0x20;
/** Bytes of CR LF, which ends lines and payloads. */
const TRAILER_BYTES = 2;
/** CR LF. */
const TRAILER = 0x0d0a;
/** Most bytes of a line: the greeting lists the brokers of a cluster; other lines name two subjects. */
const GREETING_BYTES_MAX = 2 * 1024 * 1024;
const LINE_BYTES_MAX = 64 * 1024;
/** Bytes of a malformed line that its error shows. */
const SHOWN_BYTES_MAX = 64;
/** `MSG ` as a number. */
const MESSAGE_WORD = 0x4d534720;
/** Digits of a number. */
const DIGITS_MAX = 15;
/**
 * Subject, subscription, optional reply, bytes in total. As the protocol says, any number of blanks separates two
 * arguments: a broker that writes an empty reply leaves two of them.
 */
const MESSAGE = /^MSG[ \t]+[^ \t\r]+[ \t]+\d{1,15}(?:[ \t]+[^ \t\r]+)?[ \t]+(\d{1,15})[ \t]*$/i;
/** A message line with headers: the bytes of the headers come before the bytes in total. */
const MESSAGE_WITH_HEADERS = /^HMSG[ \t]+[^ \t\r]+[ \t]+\d{1,15}(?:[ \t]+[^ \t\r]+)?[ \t]+(\d{1,15})[ \t]+(\d{1,15})[ \t]*$/i;
/** Lines without a payload. */
const OTHER = /^(?:(?:PING|PONG|\+OK)[ \t]*|-ERR[ \t]+[^ \t\r][^\r]*|INFO[ \t]+\{[^\r]*)$/i;
/**
 * Returns how many bytes follow the protocol line from `at` to its `newline`: payload and trailer after `MSG`
 * and `HMSG`, 0 after any other line.
 * @throws BAD_MESSAGE for a malformed line, which nats.js would print before it stops reading.
 */
export function bytesAfterLine(bytes, at, newline) {
    checkLineLength(bytes, at, newline);
    if (bytes[newline - 1] !== RETURN)
        throw malformed("a line that ends in CR LF", bytes, at);
    const end = newline + 1 - TRAILER_BYTES;
    const size = plainSize(bytes, at, end);
    if (size !== undefined)
        return size + TRAILER_BYTES;
    const line = bytes.toString("latin1", at, end);
    if (OTHER.test(line))
        return 0;
    const [, unusual] = MESSAGE.exec(line) ?? [];
    if (unusual !== undefined)
        return Number(unusual) + TRAILER_BYTES;
    const [, headerBytes, allBytes] = MESSAGE_WITH_HEADERS.exec(line) ?? [];
    if (Number(headerBytes) <= Number(allBytes))
        return Number(allBytes) + TRAILER_BYTES;
    throw malformed("a line of the NATS protocol", bytes, at);
}
/**
 * Reads the size in a line `MSG subject sid [reply] size` with single spaces; undefined for any other line.
 * Nearly every line has this form, so it is read byte by byte, without a regular expression.
 */
function plainSize(bytes, at, end) {
    if (end - at < 4 || bytes.readUInt32BE(at) !== MESSAGE_WORD)
        return undefined;
    let argument = 0;
    let start = at + 4;
    let value = 0;
    let isNumber = true;
    for (let i = start; i < end; i++) {
        const byte = bytes[i];
        if (byte === SPACE) {
            if (i === start || (argument === 1 && !(isNumber && i - start <= DIGITS_MAX)))
                return undefined;
            argument++;
            start = i + 1;
            value = 0;
            isNumber = true;
        }
        else if (byte === TAB || byte === RETURN)
            return undefined;
        else if (byte >= DIGIT_0 && byte <= DIGIT_9)
            value = value * 10 + byte - DIGIT_0;
        else
            isNumber = false;
    }
    const isWhole = argument === 2 || argument === 3;
    return isWhole && isNumber && end > start && end - start <= DIGITS_MAX ? value : undefined;
}
/**
 * Checks the length of a line, whole or not, that begins at `at` and was received up to `end`.
 * @throws BAD_MESSAGE if it is too long.
 */
export function checkLineLength(bytes, at, end) {
    const bytesMax = isGreeting(bytes, at) ? GREETING_BYTES_MAX : LINE_BYTES_MAX;
    if (end - at > bytesMax)
        throw malformed(`a line of at most ${bytesMax} bytes`, bytes, at);
}
/** @throws BAD_MESSAGE unless CR LF ends at a position. */
export function checkTrailer(bytes, end) {
    const at = end - TRAILER_BYTES;
    if (bytes.readUInt16BE(at) !== TRAILER)
        throw malformed("CR LF after a payload", bytes, at);
}
/** Returns whether the line at a position is a greeting of the broker, `INFO`, the first or a later one. */
export function isGreeting(bytes, at) {
    return ((bytes[at] ?? 0) | SMALL_BIT) === LETTER_I;
}
function isBlank(byte) {
    return byte === SPACE || byte === TAB;
}
/** Returns where the subject begins in the message line at a position. */
function subjectAt(bytes, at) {
    let start = at;
    while (!isBlank(bytes[start]))
        start++;
    while (isBlank(bytes[start]))
        start++;
    return start;
}
/** Returns whether the subject in the message line at a position begins with a prefix, which has no blank. */
export function hasSubjectPrefix(bytes, at, prefix) {
    const subject = subjectAt(bytes, at);
    return bytes.subarray(subject, subject + prefix.length).equals(prefix);
}
/**
 * Returns the last but one token of the subject in the message line at a position; "" if there is none. In
 * requests it is the sender's id.
 */
export function senderToken(bytes, at) {
    const start = subjectAt(bytes, at);
    let from = start;
    let to = start;
    let end = start;
    for (let i = start; !isBlank(bytes[i]); i++) {
        if (bytes[i] !== DOT)
            continue;
        from = to;
        to = i;
        end = i + 1;
    }
    return end === start ? "" : bytes.toString("latin1", from === start ? from : from + 1, to);
}
/** Makes the error for malformed input. */
export function malformed(expected, bytes, at) {
    const received = visible(bytes.toString("latin1", at, Math.min(bytes.length, at + SHOWN_BYTES_MAX)));
    return mismatch("BAD_MESSAGE", "broker", expected, received);
}
//# sourceMappingURL=message-line.js.map