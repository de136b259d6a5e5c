/** Time for which a link may have work: long enough to keep it busy, and short enough to let others through. */
const WORK_MS = 1_500;
/** Bytes that may always be under way: until something was measured, and while little is sent. */
const BYTES_MIN = 256 * 1024;
/** Time after which a measurement counts as old; two such times are remembered. */
const PERIOD_MS = 2_000;
/**
 * How many bytes may be under way on a link: what it has lately carried in 1.5 s, within limits. So a slow link is not
 * buried under what it cannot carry soon, and a fast one is filled after its first answers. It reads no clock.
 */
export class LinkWindow {
    #bytesMax;
    /** The most that was measured in this period, and in the one before. */
    #present = 0;
    #before = 0;
    #periodAtMs = 0;
    constructor(bytesMax) {
        this.#bytesMax = bytesMax;
    }
    /** Bytes that may be under way. */
    get bytes() {
        return Math.min(this.#bytesMax, Math.max(BYTES_MIN, this.#present, this.#before));
    }
    /** Notes that so many bytes have arrived in a time that ends now, in which the link had work. */
    note(bytes, ms, nowMs) {
        if (nowMs - this.#periodAtMs >= PERIOD_MS) {
            this.#before = this.#present;
            this.#present = 0;
            this.#periodAtMs = nowMs;
        }
        const carried = Math.floor((bytes * WORK_MS) / Math.max(1, ms));
        this.#present = Math.max(this.#present, carried);
    }
    /** Forgets what was measured: the connection is another one. */
    reset() {
        this.#present = 0;
        this.#before = 0;
    }
}
//# sourceMappingURL=link-window.js.map