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
