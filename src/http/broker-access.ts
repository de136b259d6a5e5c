import type { ConnectionOverrides, Environment } from "../client/wire/broker-settings.ts";

/** How the broker is reached whose jobs are shown. */
export interface BrokerAccess {
  /** Settings that are left out come from the environment. */
  readonly broker: ConnectionOverrides;
  readonly environment: Environment;
  /** The id under which hosts are asked; permissions of the broker may be bound to it. */
  readonly asker: string;
}
