import { once } from "node:events";
import { visible } from "../../protocol/errors.js";
import { formatBytes, formatDuration } from "./amounts.js";
import { makePaint, wantsAnimation, wantsColor } from "./colors.js";
import { visibleColored, visibleJson, visibleLines, wrapMessage } from "./wrap.js";
const REDRAW_MS = 100;
const ERASE_LINE = "\r\u001b[2K";
/** Shows the progress of long work on one line that is overwritten. */
export class Progress {
    #write;
    #what;
    #now;
    #show;
    #startedMs;
    #drawnMs = Number.NEGATIVE_INFINITY;
    #drawn = false;
    /**
     * Prepares a line of progress. Without `write`, if the output is no terminal, every call does nothing. `show`
     * prints amounts of what is done, by default bytes.
     */
    constructor(what, write, now = () => performance.now(), show = formatBytes) {
        this.#what = what;
        this.#write = write;
        this.#now = now;
        this.#show = show;
        this.#startedMs = now();
    }
    /** Updates the amounts done and in all; redraws at most ten times a second. */
    update(done, total) {
        const now = this.#now();
        if (this.#write === undefined || now - this.#drawnMs < REDRAW_MS)
            return;
        this.#drawnMs = now;
        this.#drawn = true;
        this.#write(ERASE_LINE + this.#line(done, total, now - this.#startedMs));
    }
    /** Shows the elapsed time until `work` ends, then removes the line. */
    async during(work) {
        const timer = setInterval(() => this.update(0), REDRAW_MS);
        try {
            return await work;
        }
        finally {
            clearInterval(timer);
            this.clear();
        }
    }
    /** Shows what `work` reports as done and in all until it ends, then removes the line. */
    async reported(work) {
        try {
            return await work((done, total) => this.update(done, total));
        }
        finally {
            this.clear();
        }
    }
    /** Removes the line, so that messages can follow. */
    clear() {
        if (this.#drawn)
            this.#write?.(ERASE_LINE);
        this.#drawn = false;
    }
    #line(done, total, elapsedMs) {
        const elapsed = formatDuration(elapsedMs);
        if (total === undefined)
            return `${this.#what} ${elapsed}`;
        const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
        const amount = `${this.#show(done)} of ${this.#show(total)}`;
        const perSecond = elapsedMs > 0 ? Math.round((done / elapsedMs) * 1000) : 0;
        return `${this.#what} ${percent} %  ${amount}  ${elapsed}, ${this.#show(perSecond)}/s`;
    }
}
/**
 * Prints data on one stream and messages for people on the other. Control sequences are escaped here,
 * wherever they come from, except for colours where text may be coloured.
 */
export class Output {
    /** Whether data is to be JSON, one value a line. */
    json;
    /** Styles text for the data stream. */
    paint;
    /** Columns for lines of data; infinite if not known. */
    width;
    #data;
    #messages;
    #settings;
    constructor(data, messages, settings) {
        this.#data = data;
        this.#messages = messages;
        this.#settings = settings;
        this.json = settings.json;
        this.paint = settings.paint;
        this.width = settings.width;
    }
    /**
     * Opens an output on two streams. With `clock` messages and warnings begin with the time, in ISO form: they
     * are a log.
     */
    static open({ stdout, stderr }, environment, flags, clock) {
        const noColor = flags.color === false;
        const isColored = wantsColor(stdout.isTTY === true, environment, noColor);
        return new Output(stdout, stderr, {
            json: flags.json === true,
            isColored,
            paint: makePaint(isColored),
            width: lineWidth(stdout, environment),
            paintMessage: makePaint(wantsColor(stderr.isTTY === true, environment, noColor)),
            messageWidth: messageWidth(stderr),
            animated: wantsAnimation(stderr.isTTY === true, environment),
            clock,
        });
    }
    /** Prints lines of data; names in coloured ones must be `visible` already. */
    lines(lines) {
        const shown = lines.map(this.#settings.isColored ? visibleColored : visible);
        if (lines.length > 0)
            this.#data.write(`${shown.join("\n")}\n`);
    }
    /** Prints one JSON value on one line of data. */
    value(value) {
        this.#data.write(`${visibleJson(value)}\n`);
    }
    /**
     * Prints chunks of data unchanged, no faster than the reader takes them.
     * @throws the signal's reason if it is aborted while the reader takes nothing.
     */
    async stream(chunks, signal) {
        for (const chunk of chunks) {
            if (!this.#data.write(chunk))
                await this.#untilDrained(signal);
        }
    }
    async #untilDrained(signal) {
        try {
            await once(this.#data, "drain", { signal });
        }
        catch (error) {
            // `once` throws an error of its own, which does not say what has aborted it.
            signal.throwIfAborted();
            throw error;
        }
    }
    /** Prints a message for people; nothing with `--json`. */
    message(text) {
        if (!this.json)
            this.#tell(visible(text));
    }
    /** Prints a warning for people, with `--json` as an object on the message stream. */
    warning(text) {
        const prefix = this.#settings.paintMessage("warn", "warning:");
        if (!this.json)
            this.#tell(`${prefix} ${visibleLines(text)}`);
        else
            this.#messages.write(`${visibleJson({ time: this.#time(), warning: text })}\n`);
    }
    /**
     * Shows the progress of long work on the message stream; does nothing if that is no terminal. `show` prints
     * amounts of what is done, by default bytes.
     */
    progress(what, show) {
        const animated = this.#settings.animated && !this.json;
        const write = animated ? (text) => this.#messages.write(text) : undefined;
        return new Progress(what, write, undefined, show);
    }
    #tell(text) {
        const time = this.#time();
        const lines = time === undefined ? text : `${time} ${text}`;
        this.#messages.write(`${wrapMessage(lines, this.#settings.messageWidth)}\n`);
    }
    #time() {
        return this.#settings.clock?.().toISOString();
    }
}
/** Returns the columns of a terminal; infinite for any other stream, which programs may read. */
export function messageWidth({ isTTY, columns }) {
    // A terminal that does not know its size has 0 columns.
    const isKnown = isTTY === true && columns !== undefined && columns > 0;
    return isKnown ? columns : Number.POSITIVE_INFINITY;
}
/** Returns the columns of the terminal, or else those in the variable COLUMNS. */
function lineWidth(stream, environment) {
    const columns = messageWidth(stream);
    if (Number.isFinite(columns))
        return columns;
    const variable = environment["COLUMNS"] ?? "";
    return /^[1-9][0-9]{0,5}$/.test(variable) ? Number(variable) : Number.POSITIVE_INFINITY;
}
//# sourceMappingURL=output.js.map