import { PserverError } from "../protocol/index.ts";
import type { Drops, Lending } from "./frame-assembler.ts";
/**
 * Shows an address in messages without its credentials, whatever their form: the scheme, `…@` for anything
 * before the last `@`, and the rest if it is host and port, else `…`. A password that is not escaped could
 * continue in that rest as a path or a port.
 */
export declare function showUrl(url: string): string;
/**
 * Shows one address of a list in messages, as {@link showUrl} does. Of text with commas and an `@` the whole
 * text is shown that way, because a comma may be in a password.
 */
export declare function showListed(list: string | readonly string[], entry: string): string;
/** One address of a broker, as given by a user. */
export interface BrokerAddress {
    /** `host:port`, `nats://host:port` or `tls://host:port`, without credentials. */
    readonly server: string;
    /** Whether the scheme is `tls`: then nothing is sent without TLS. */
    readonly isTls: boolean;
    /** The part before the `@`, still escaped; absent if it is empty. */
    readonly userInfo?: string;
}
/**
 * Parses the addresses of one broker or cluster, from a list or from text with commas. An address without a
 * scheme is `nats://`. In text with several addresses, one with credentials must have its scheme; nothing
 * between two commas, or after the last one, is no address.
 * @throws BAD_VALUE for anything else; the message shows no part of the credentials.
 */
export declare function parseBrokerAddresses(given: string | readonly string[]): BrokerAddress[];
/**
 * Returns whether the addresses of one broker or cluster ask for TLS.
 * @throws BAD_VALUE unless all do or none does: a lost connection may be made to any of them again, and
 * must not lose its protection.
 */
export declare function asksForTls(addresses: readonly BrokerAddress[]): boolean;
/** Makes the error for an invalid address; `shown` is the address without credentials. */
export declare function badBrokerAddress(shown: string): PserverError;
/** How to reach a broker: plain data, so that it can be passed to worker threads and child processes. */
export interface ConnectionSettings {
    /**
     * `nats://`, `tls://` or `host:port`, of one broker or cluster. With `tls://`, which all have or
     * none, or with TLS files, nothing is sent to a broker that offers no TLS, now or later.
     */
    readonly servers: readonly string[];
    readonly user?: string;
    readonly password?: string;
    readonly token?: string;
    /** Path of a `.creds` file. */
    readonly credsFile?: string;
    /** Path of a file that holds an nkey seed. */
    readonly nkeyFile?: string;
    /** Files for TLS. Without `caFile` the broker's certificate must be one that this machine trusts. */
    readonly tls?: {
        readonly certFile?: string;
        readonly keyFile?: string;
        readonly caFile?: string;
    };
    /** How long connecting, and each request to the broker itself, may take. */
    readonly timeoutMs: number;
}
/** The role of one connection: its name at the broker, and where its replies go. */
export interface ConnectionRole {
    readonly name: string;
    /** Prefix of the subjects of replies, without a final dot. The broker's permissions name it. */
    readonly inboxPrefix: string;
    /** As in {@link BulkConnectionOptions}. */
    readonly lending?: Lending;
    /** As in {@link BulkConnectionOptions}. */
    readonly drops?: Drops;
}
//# sourceMappingURL=connection.d.ts.map