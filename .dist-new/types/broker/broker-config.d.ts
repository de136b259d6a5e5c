/**
 * Finds the directory of this package: the nearest one above this file that contains `nats.conf`. The same
 * code runs from `src/`, `dist/` and `build/programs/src/`, which are at different depths.
 * @throws INTERNAL if there is none: the installation is incomplete.
 */
export declare function packageRoot(): string;
/** Configuration of a broker besides its address. */
export interface BrokerConfig {
    /** Directory for JetStream, the lock and the written configuration; created if needed. */
    readonly storeDir: string;
    /** Replaces the package's `nats.conf`. It must enable JetStream and not name a `store_dir`. */
    readonly configFile?: string;
    /**
     * Whether an acknowledged update survives a power loss, at the cost of a disk sync each; false by
     * default. Not with `configFile`, which can set it itself.
     */
    readonly durable?: boolean;
    /** Lines for the `jetstream` block, such as limits. Not with `configFile`. */
    readonly jetstreamConfig?: string;
    /** Lines at the end of the configuration; they override earlier settings. */
    readonly extraConfig?: string;
}
/**
 * A configuration that is ready to be started: the text of the file, and the flags that the broker needs with
 * it.
 */
export interface WrittenConfig {
    readonly text: string;
    readonly flags: readonly string[];
}
/**
 * Returns whether to set the limit of file storage: not beside a user's file, and not if `jetstreamConfig`
 * sets it, because the broker reads the names of the limit in no defined order.
 */
export declare function setsFileLimit({ configFile, jetstreamConfig }: BrokerConfig): boolean;
/**
 * Returns the bytes that a broker may keep in files: three quarters of the free disk space, and never less
 * than in `lastConfig`, the text of its last configuration or "". By default nats-server takes three quarters
 * of the space that is free at its start. On a disk that has filled up since its last start, it would then
 * refuse streams and records that it has space for in its own files.
 */
export declare function fileLimitBytes(freeBytes: number, lastConfig: string): number;
/**
 * Makes the configuration to be written into the store directory: it includes a file and overrides parts of
 * it.
 *
 * The `jetstream` block of the package's own file is replaced, because every version of the broker refuses
 * the `-sd` flag together with a `store_dir`. Nothing in a user's file is replaced: its block may hold
 * settings that must not be lost silently, such as `sync_interval`. With such a file the flag is used, and
 * the broker refuses a file that also names a `store_dir`.
 * @param fileBytesMax most bytes that the broker may keep in files; absent, the broker decides.
 * @throws BAD_PATH if a path holds a quote, a backslash or a control character.
 * @throws BAD_VALUE if `configFile` is given with `durable` or `jetstreamConfig`.
 */
export declare function writeBrokerConfig(settings: BrokerConfig, fileBytesMax?: number): WrittenConfig;
/** Parses a JSON object that another program has written; undefined if the text is not one. */
export declare function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined;
/** A broker's greeting to a client. */
export interface BrokerGreeting {
    readonly version: string;
    readonly jetstream: boolean;
    readonly maxPayloadBytes: number;
}
/**
 * Connects, reads the broker's greeting and disconnects. A broker that greets accepts clients.
 * @throws NO_BROKER if nothing answers within `timeoutMs`, or not a broker; ABORTED by `signal`.
 */
export declare function readBrokerGreeting(host: string, port: number, timeoutMs: number, signal?: AbortSignal): Promise<BrokerGreeting>;
//# sourceMappingURL=broker-config.d.ts.map