import { asMap, integerField, listField, PserverError, textField } from "../protocol/index.js";
import { parseJson } from "./broker-error.js";
import { ReadBuffer } from "./buffers.js";
import { bytesAfterLine, checkLineLength, checkTrailer, hasSubjectPrefix, isGreeting, malformed, senderToken, } from "./message-line.js";
/** Least message size that is accepted, whatever `max_payload` the broker has. */
const MESSAGE_BYTES_FLOOR = 8 * 1024 * 1024;
const MESSAGE_BYTES_CEILING = 64 * 1024 * 1024;
/** Bytes of the headers that the broker adds to a stored message. */
const ADDED_HEADER_BYTES = 64 * 1024;
/** Brokers that a greeting may list. */
const URLS_MAX = 4_096;
/** A name, an IPv4 address or an IPv6 one in brackets, and a port. */
const ADDRESS = /^[\w.:[\]-]+:\d{1,5}$/;
/** Message size accepted before the greeting: a broker sends no message before it. */
const NO_MESSAGE_BYTES = 0;
/**
 * Returns the most bytes of headers and payload that are accepted from a broker with this greeting. Because
 * messages may have been stored under a higher `max_payload`, at least 8 MiB are accepted; never more than 64
 * MiB, the most that nats-server allows.
 * @throws BAD_MESSAGE for a greeting that nats.js could not read.
 */
function messageBytesMax(line) {
    const info = asMap(parseJson(line.slice(line.indexOf("{")), "broker: INFO"), "INFO");
    const version = textField(info, "version");
    if (!/\d+\.\d+\.\d+/.test(version))
        throw badGreeting("version", "x.y.z");
    const urls = info["connect_urls"] == null ? [] : listField(info, "connect_urls", URLS_MAX);
    if (!urls.every(isAddress))
        throw badGreeting("connect_urls", "a list of host:port");
    const payloadBytes = integerField(info, "max_payload", 1);
    const bytes = Math.min(Math.max(payloadBytes, MESSAGE_BYTES_FLOOR), MESSAGE_BYTES_CEILING);
    return bytes + ADDED_HEADER_BYTES;
}
function isAddress(value) {
    return typeof value === "string" && ADDRESS.test(value) && URL.canParse(`http://${value}`);
}
function badGreeting(entry, expected) {
    return new PserverError("BAD_MESSAGE", `broker: INFO: ${entry}: expected ${expected}`, {
        expected,
    });
}
/** Bytes read at a time if messages are not lent; longer than any control line. */
const READ_BYTES = 128 * 1024;
/** Bytes read at a time if messages are lent: several messages of medium size. */
const LENDING_READ_BYTES = 512 * 1024;
/** Messages of at least this size are lent if allowed, else get a buffer of their own. */
const LARGE_BYTES = 32 * 1024;
/**
 * Lent messages up to this size stay in the read buffer until they are complete. The received part of
 * one is moved when the rest does not fit; the smaller this size, the less is copied.
 */
const IN_PLACE_BYTES_MAX = 192 * 1024;
const NEWLINE = 0x0a;
/**
 * Cuts a broker's bytes at the borders of messages, so that a large payload lies in one buffer. The
 * parser of nats.js then returns a view, and need not gather the payload in a growing buffer. Lent
 * messages of medium size are emitted in place, several in one chunk. Other large messages get a
 * buffer of their own, into which the kernel reads the rest. Small messages are copied, lent or not.
 *
 * Malformed input is never emitted: nats.js would print it and stop reading. Memory for a message is
 * allocated only after its size was compared with what the broker can send.
 *
 * Use: read into {@link target}, then call {@link took} with the number of bytes.
 */
export class FrameAssembler {
    #emit;
    #lending;
    #drops;
    #lentPrefix;
    #read;
    /** The large message under way. */
    #frame;
    /** Whether the last large message had a buffer of its own: the next one is likely to have one. */
    #framed = false;
    /** Most bytes of a message, from the last greeting. */
    #messageBytesMax = NO_MESSAGE_BYTES;
    /** Makes an assembler. `lending` says which large messages are lent; the others own their buffers. */
    constructor(emit, lending, drops) {
        this.#drops = drops;
        this.#emit = emit;
        this.#lending = lending;
        this.#lentPrefix = Buffer.from(lending?.prefix ?? "");
        this.#read =
            lending === undefined
                ? new ReadBuffer(READ_BYTES, LARGE_BYTES)
                : new ReadBuffer(LENDING_READ_BYTES, IN_PLACE_BYTES_MAX);
    }
    /** Returns the memory to read the next bytes into. */
    target() {
        if (this.#frame !== undefined)
            return this.#frame.bytes.subarray(this.#frame.filled);
        const target = this.#read.target();
        // A large message's first bytes are copied into its own buffer: fewer are read to copy less.
        return this.#framed ? target.subarray(0, READ_BYTES) : target;
    }
    /**
     * Notes that this many bytes were read into {@link target}.
     * @throws BAD_MESSAGE for malformed input; the connection must then be closed.
     */
    took(bytes) {
        if (this.#frame === undefined) {
            this.#read.took(bytes);
            this.#scan();
            return;
        }
        this.#frame.filled += bytes;
        if (this.#frame.filled === this.#frame.bytes.length)
            this.#finishFrame(this.#frame);
    }
    #finishFrame({ bytes, lender }) {
        this.#frame = undefined;
        checkTrailer(bytes, bytes.length);
        this.#emit({ bytes, lender });
    }
    /** Emits complete messages of the read buffer, also before malformed input, and begins the frame of a large one. */
    #scan() {
        const { pending } = this.#read;
        let start = 0;
        let at = 0;
        let isRunLent = false;
        try {
            for (;;) {
                const newline = pending.indexOf(NEWLINE, at);
                if (newline < 0) {
                    checkLineLength(pending, at, pending.length);
                    break;
                }
                const end = newline + 1 + this.#bytesAfter(pending, at, newline);
                const bytes = end - at;
                const isWhole = end <= pending.length;
                const isLarge = bytes >= LARGE_BYTES;
                const isLent = isLarge && this.#isLent(pending, at);
                const isInPlace = isLent ? isWhole || bytes <= IN_PLACE_BYTES_MAX : !isLarge;
                if (!isInPlace) {
                    this.#emitRun(start, at, isRunLent);
                    // Consumed now: a malformed message is not looked at again.
                    start = at;
                    at += this.#beginFrame(pending.subarray(at, end), bytes, isLent);
                    start = at;
                    continue;
                }
                if (!isWhole)
                    break;
                if (end > newline + 1)
                    checkTrailer(pending, end);
                if (end > newline + 1 && !isLarge && this.#drops?.(senderToken(pending, at)) === true) {
                    this.#emitRun(start, at, isRunLent);
                    at = end;
                    start = at;
                    continue;
                }
                if (isLent !== isRunLent) {
                    this.#emitRun(start, at, isRunLent);
                    start = at;
                    isRunLent = isLent;
                }
                if (isLent)
                    this.#framed = false;
                at = end;
            }
        }
        finally {
            this.#emitRun(start, at, isRunLent);
        }
        this.#read.pass(at);
    }
    /** Returns the bytes that follow a line; @throws BAD_MESSAGE if they are more than the broker can send. */
    #bytesAfter(bytes, at, newline) {
        const after = bytesAfterLine(bytes, at, newline);
        if (isGreeting(bytes, at)) {
            this.#messageBytesMax = messageBytesMax(bytes.toString("utf8", at, newline));
        }
        if (after <= this.#messageBytesMax)
            return after;
        throw malformed(`messages of at most ${this.#messageBytesMax} bytes`, bytes, at);
    }
    /** Returns whether the large message at a position is to be lent. */
    #isLent(bytes, at) {
        return this.#lending !== undefined && hasSubjectPrefix(bytes, at, this.#lentPrefix);
    }
    /** Emits adjoining messages of the read buffer: a view of them if they are lent, else a copy. */
    #emitRun(start, end, isLent) {
        if (start === end)
            return;
        if (isLent)
            this.#emit(this.#read.lend(start, end));
        else {
            const bytes = Buffer.from(this.#read.pending.subarray(start, end));
            this.#emit({ bytes, lender: undefined });
        }
    }
    /** Moves the received part of a message into a buffer of its own; returns its length. */
    #beginFrame(come, bytes, isLent) {
        const pool = isLent ? this.#lending?.pool : undefined;
        const memory = pool?.take(bytes) ?? Buffer.allocUnsafeSlow(bytes);
        const frame = { bytes: memory, lender: pool, filled: come.length };
        come.copy(memory);
        this.#framed = true;
        if (come.length === bytes)
            this.#finishFrame(frame);
        else
            this.#frame = frame;
        return come.length;
    }
}
//# sourceMappingURL=frame-assembler.js.map