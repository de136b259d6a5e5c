/**
 * Returns the directory where `pserver setup` installs a broker for this user: `nats-pserver/bin` in
 * `XDG_DATA_HOME`, or in `~/.local/share` if that is not set.
 */
export declare function userBrokerDirectory(environment: Readonly<Record<string, string | undefined>>): string;
/** A nats-server program on this machine. */
export interface FoundBroker {
    readonly path: string;
    /** Such as `2.12.15`. */
    readonly version: string;
}
/**
 * Finds the broker to start. Searches in this order: `PSERVER_NATS_SERVER`, `.tools/bin` of the package, the
 * directory of `pserver setup`, `PATH`, the system's directories. Programs that are too old are skipped; the
 * one that `PSERVER_NATS_SERVER` names is used or refused.
 * @param root directory of the package.
 * @throws NO_BROKER if there is none, or the named one cannot be run.
 * @throws BROKER_TOO_OLD if all that were found are too old; ABORTED by `signal`.
 */
export declare function findBroker(environment?: Readonly<Record<string, string | undefined>>, signal?: AbortSignal, root?: string): Promise<FoundBroker>;
//# sourceMappingURL=find-broker.d.ts.map