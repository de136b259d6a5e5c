/**
 * The log of a broker, in a file of its store directory: `broker.log`, and what was before it in `broker.log.1`. It
 * only tells: on a full disk lines are left out, and the broker goes on.
 */
export declare class BrokerLog {
    #private;
    readonly path: string;
    /** `storeDir` must exist. `bytesMax`: size of a file, 4 MiB by default. */
    constructor(storeDir: string, bytesMax?: number);
    /** Adds a line, at once: the last lines before a crash of this process are those that matter. */
    add(line: string): void;
}
//# sourceMappingURL=broker-log.d.ts.map