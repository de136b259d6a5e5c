import { visibleExcept, visibleJson } from "../output/wrap.js";
const LF = 0x0a;
const CR = 0x0d;
/** The longest line that is not cut. */
export const LINE_BYTES_MAX = 64 * 1024;
/**
 * Cuts bytes into lines, without their ends: LF, CR LF, or CR alone as progress bars write it. A line that is
 * too long is cut into several, between characters of UTF-8.
 */
export class LineSplitter {
    #bytesMax;
    #rest = Buffer.alloc(0);
    #afterReturn = false;
    constructor(bytesMax = LINE_BYTES_MAX) {
        this.#bytesMax = bytesMax;
    }
    /** Returns the lines that `chunk` ends. */
    push(chunk) {
        const lines = [];
        let from = 0;
        for (let at = 0; at < chunk.length; at++) {
            const byte = chunk[at];
            const isSecondHalf = byte === LF && this.#afterReturn;
            this.#afterReturn = byte === CR;
            if (byte !== LF && byte !== CR)
                continue;
            if (!isSecondHalf)
                lines.push(...this.#take(chunk.subarray(from, at)), this.#flush());
            from = at + 1;
        }
        lines.push(...this.#take(chunk.subarray(from)));
        return lines;
    }
    /** Returns the bytes after the last end of a line, if there are any. */
    end() {
        return this.#rest.length === 0 ? [] : [this.#flush()];
    }
    /** Adds bytes to the current line; returns what exceeds the longest line, cut into lines. */
    #take(bytes) {
        const lines = [];
        let line = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
        while (line.length > this.#bytesMax) {
            const end = characterEnd(line, this.#bytesMax);
            lines.push(line.subarray(0, end));
            line = line.subarray(end);
        }
        this.#rest = line;
        return lines;
    }
    #flush() {
        const line = this.#rest;
        this.#rest = Buffer.alloc(0);
        return line;
    }
}
/** Returns the end of the last whole character before `end`; `end` itself if the bytes are no UTF-8. */
function characterEnd(bytes, end) {
    for (let at = end; at > end - 4 && at > 0; at--) {
        if (((bytes[at] ?? 0) & 0xc0) !== 0x80)
            return at;
    }
    return end;
}
/** Colours and tabs, which a trainer may use on a terminal; other control sequences are escaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what it finds
const HARMLESS = /(\u001b\[[0-9;:]*m|\t)/;
const RESET = "\u001b[0m";
/** Prints the output of trainers in whole lines, each after the rank of its trainer. */
export class TrainerOutput {
    #options;
    #drained = new Map();
    /** Streams whose reader is gone: what trainers write to them is dropped, so that they go on. */
    #unread = new Set();
    constructor(options) {
        this.#options = options;
        for (const stream of [options.stdout, options.stderr]) {
            stream.on("error", (error) => {
                if (error.code === "EPIPE")
                    this.#unread.add(stream);
            });
        }
    }
    /** Whether the reader of this process's output takes no more at present. */
    get isHeldUp() {
        return this.#drained.size > 0;
    }
    /** Prints a stream of a trainer until it ends; reads no faster than this process's output is read. */
    async follow(rank, name, source) {
        const lines = this.printer(rank, name);
        for await (const chunk of source)
            await lines.print(chunk);
        await lines.end();
    }
    /** Makes a printer of one stream of a trainer, for a caller that reads the stream itself. */
    printer(rank, name) {
        const lines = new LineSplitter();
        const target = this.#target(name);
        return {
            print: async (bytes) => {
                if (!this.#unread.has(target))
                    await this.#print(rank, name, lines.push(bytes));
            },
            end: () => this.#print(rank, name, lines.end()),
        };
    }
    #target(name) {
        const { json, stdout } = this.#options;
        return json ? stdout : this.#options[name];
    }
    async #print(rank, name, lines) {
        const target = this.#target(name);
        for (const line of lines) {
            if (this.#unread.has(target))
                return;
            const isTaken = target.write(this.#shown(rank, name, line, target.isTTY === true));
            if (!isTaken)
                await this.#untilDrained(target);
        }
    }
    #shown(rank, name, line, isTerminal) {
        const { json, paint, count } = this.#options;
        if (json)
            return `${visibleJson({ rank, [name]: line.toString("utf8") })}\n`;
        const width = String(count - 1).length;
        const prefix = `${paint[name](rank, `[${String(rank).padStart(width)}]`)} `;
        if (isTerminal)
            return `${prefix}${harmless(line.toString("utf8"))}\n`;
        return Buffer.concat([Buffer.from(prefix), line, Buffer.from("\n")]);
    }
    /**
     * Waits until a stream takes more. All trainers share one wait, because the stream warns of too many
     * listeners. The wait also ends with an error, after which the stream does not drain.
     */
    #untilDrained(target) {
        const waiting = this.#drained.get(target);
        if (waiting !== undefined)
            return waiting;
        const drained = new Promise((resolve) => {
            const settle = () => {
                target.off("drain", settle).off("error", settle);
                this.#drained.delete(target);
                resolve();
            };
            target.on("drain", settle).on("error", settle);
        });
        this.#drained.set(target, drained);
        return drained;
    }
}
function harmless(line) {
    const shown = visibleExcept(line, HARMLESS);
    // Resets colours, which would otherwise continue in other trainers' lines.
    return shown.includes("\u001b[") ? `${shown}${RESET}` : shown;
}
//# sourceMappingURL=trainer-output.js.map