/** Time between two looks at a connection. */
const LOOK_MS = 1_500;
/**
 * How long nothing may come or go while a PING is not answered: more while bytes that were sent before may still be on
 * their way, so much as a link of 1 Mbit/s needs for them, up to what it needs for the largest buffer of a kernel.
 */
const SILENCE_MS = 3_000;
const BYTES_PER_MS = 125;
const SILENCE_MS_MAX = 36_000;
/**
 * Ends a connection whose broker hangs or cannot be reached, though nothing has closed it. Whatever arrives or leaves
 * shows that the broker is there, were it a part of a message: nats.js itself counts only answers to PINGs, which a slow
 * link brings behind megabytes.
 */
export class SilenceWatch {
    #connection;
    #timer;
    /** The PING without an answer; undefined if there is none. */
    #ping;
    /** Bytes sent before the last PING that was answered. */
    #confirmedBytes = 0;
    /** Bytes that had come and gone at the last look. */
    #movedBytes = 0;
    #heardAtMs = 0;
    #lookedAtMs = performance.now();
    /** Watches until {@link stop}. */
    constructor(connection) {
        this.#connection = connection;
        this.#timer = setInterval(() => this.#look(), LOOK_MS);
        this.#timer.unref();
    }
    /** Stops to watch. */
    stop() {
        clearInterval(this.#timer);
    }
    #look() {
        const nowMs = performance.now();
        // A time in which this process was paused or busy is no silence: what has come meanwhile is yet to be read.
        const isLate = nowMs - this.#lookedAtMs > 2 * LOOK_MS;
        this.#lookedAtMs = nowMs;
        const traffic = this.#connection.traffic();
        if (traffic === undefined) {
            this.#ping = undefined;
            this.#confirmedBytes = 0;
            return;
        }
        const { sentBytes } = traffic;
        const movedBytes = movedBytesOf(traffic);
        if (isLate || movedBytes !== this.#movedBytes)
            this.#heardAtMs = nowMs;
        this.#movedBytes = movedBytes;
        if (this.#ping === undefined) {
            this.#send(sentBytes, nowMs);
        }
        else if (nowMs - this.#heardAtMs >= patienceMs(sentBytes - this.#confirmedBytes)) {
            this.#ping = undefined;
            this.#confirmedBytes = 0;
            this.#connection.end();
        }
    }
    #send(sentBytes, nowMs) {
        const ping = {};
        this.#ping = ping;
        this.#heardAtMs = nowMs;
        const answered = () => {
            if (this.#ping !== ping)
                return;
            this.#ping = undefined;
            this.#confirmedBytes = sentBytes;
        };
        const lost = () => {
            if (this.#ping === ping)
                this.#ping = undefined;
        };
        this.#connection.ping().then(answered, lost);
        // That the PING itself leaves shows nothing.
        const traffic = this.#connection.traffic();
        if (traffic !== undefined)
            this.#movedBytes = movedBytesOf(traffic);
    }
}
/** Returns how many bytes a connection has received, and given to the kernel, since it was made. */
function movedBytesOf({ receivedBytes, leftBytes }) {
    return receivedBytes + leftBytes;
}
/** Returns how long nothing may come or go while so many bytes may be on their way to the broker. */
function patienceMs(bytes) {
    return Math.min(SILENCE_MS + Math.floor(Math.max(0, bytes) / BYTES_PER_MS), SILENCE_MS_MAX);
}
//# sourceMappingURL=silence-watch.js.map