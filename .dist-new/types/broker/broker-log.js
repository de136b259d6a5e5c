import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
/** Size from which on the file becomes the older one, and a new one begins. */
const FILE_BYTES_MAX = 4 * 1024 ** 2;
/** Name of the file in the store directory of a broker that this program has started. */
const FILE_NAME = "broker.log";
/**
 * The log of a broker, in a file of its store directory: `broker.log`, and what was before it in `broker.log.1`. It
 * only tells: on a full disk lines are left out, and the broker goes on.
 */
export class BrokerLog {
    path;
    #bytesMax;
    #bytes;
    /** `storeDir` must exist. `bytesMax`: size of a file, 4 MiB by default. */
    constructor(storeDir, bytesMax = FILE_BYTES_MAX) {
        this.path = join(storeDir, FILE_NAME);
        this.#bytesMax = bytesMax;
        this.#bytes = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
    }
    /** Adds a line, at once: the last lines before a crash of this process are those that matter. */
    add(line) {
        const text = `${line}\n`;
        try {
            if (this.#bytes >= this.#bytesMax) {
                renameSync(this.path, `${this.path}.1`);
                this.#bytes = 0;
            }
            appendFileSync(this.path, text, { mode: 0o600 });
            this.#bytes += Buffer.byteLength(text);
        }
        catch {
            // The disk that the broker complains about is mostly the same one.
        }
    }
}
//# sourceMappingURL=broker-log.js.map