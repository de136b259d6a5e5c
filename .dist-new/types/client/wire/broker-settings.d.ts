import { type ConnectionSettings } from "../../transport/connection.ts";
/** Settings given by a caller; those left out come from the environment or a NATS context. */
export interface ConnectionOverrides extends BrokerSettings {
    /** Name of a context of the `nats` command. */
    readonly context?: string;
}
/** {@link ConnectionOverrides} with the name and inbox of the connection. */
export interface NamedConnectionOverrides extends ConnectionOverrides {
    /** Name of the connection in the broker's monitoring. */
    readonly name?: string;
    /** Subject prefix of replies; the broker's permissions refer to it. */
    readonly inboxPrefix?: string;
}
export declare const DEFAULT_URL = "nats://127.0.0.1:4222";
/**
 * Finds out how to reach the broker: what the caller gives, else `PSERVER_URL` and the `NATS_…` variables
 * that the `nats` command knows, else a NATS context, else localhost. nats.js itself reads none.
 *
 * The address, the credentials and the TLS files are each taken from the first source that has any
 * of them; credentials in the address win. Only the password of a caller's user may be left to
 * `NATS_PASSWORD`, unless `NATS_USER` says that it is another user's. A context that is named (by
 * the caller or `NATS_CONTEXT`) fills in what is missing; the one the `nats` command has selected is
 * used only if nothing else gives an address, so that its credentials never go to another broker. Without any
 * credentials, a broker of this machine that this user has started gets its token from the user's file.
 *
 * @throws BAD_VALUE for an invalid setting, IO for a token that cannot be read.
 */
export declare function resolveSettings(overrides: ConnectionOverrides, env?: Environment): ConnectionSettings;
/** Returns a variable's text; undefined if it is not set or empty. */
export declare function nonEmpty(text: string | undefined): string | undefined;
/** Addresses and credentials of the broker; files are given by path. */
export interface BrokerSettings {
    /**
     * One address, several separated by commas, or a list; may hold `user:password@`. With `tls://`
     * nothing is sent to a broker that offers no TLS; all addresses have it, or none.
     */
    readonly url?: string | readonly string[];
    readonly user?: string;
    readonly password?: string;
    readonly token?: string;
    /** Credentials file of a JWT user. */
    readonly creds?: string;
    /** File with the seed of an nkey. */
    readonly nkey?: string;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    readonly tlsCa?: string;
    /** How long one attempt to connect may take. */
    readonly connectTimeoutMs?: number;
}
/** Environment variables to read settings from; `process.env` by default. */
export type Environment = Readonly<Record<string, string | undefined>>;
//# sourceMappingURL=broker-settings.d.ts.map