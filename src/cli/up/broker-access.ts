import { join } from "node:path";
import type { HostOptions } from "../../actors/host/host.ts";
import type { AuthDirectory } from "../../broker/auth/auth-directory.ts";
import type { BrokerConfig } from "../../broker/broker-config.ts";
import type { ConnectionOverrides } from "../../client/wire/broker-settings.ts";
import { mismatch } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { shellWord } from "../../system/shell-word.ts";
import type { Output } from "../output/output.ts";
import { keepToken } from "./broker-token.ts";

/** The only trainer that a directory of users has unless others are named. */
export const TRAINER_DEFAULT = "trainer-1";

/** Number of trainers whose files are told to people. */
export const TRAINERS_SHOWN = 3;

/** Loads what makes keys and certificates: other commands start faster without it. */
export function loadAuth(): Promise<typeof import("../../broker/auth/auth-directory.ts")> {
  return import("../../broker/auth/auth-directory.ts");
}

/** How the hosts and clients of a local server get in. */
export interface BrokerAccess {
  /** What the broker's configuration says about it. */
  readonly config: Pick<BrokerConfig, "extraConfig" | "authFile">;
  /** Settings of the connections of a host in this process. */
  readonly connect: (
    connection: HostOptions["connection"],
  ) => Pick<HostOptions, "connection" | "answerConnection" | "acrossAccounts">;
  /** Settings of the connections of those who look at all jobs: hosts' own, as they read what others may not. */
  readonly clientSettings: ConnectionOverrides;
  /** Arguments of a host in a process of its own. */
  readonly hostArguments: readonly string[];
  /** Variables of a host in a process of its own. */
  readonly hostVariables: Readonly<Record<string, string>>;
  /** The token that clients need, if they need one. */
  readonly token?: string;
  /** The directory of users and keys, if clients need one of these. */
  readonly auth?: AuthDirectory;
}

/** Flags that say who gets in. */
export interface AccessFlags {
  readonly job: string;
  /** Whether clients need no token. */
  readonly noToken?: boolean;
  /** Directory of users and keys; true for that in the store. */
  readonly secure?: string | true;
}

/**
 * Opens how hosts and clients get in: with the keys of `--secure`, which are made if there are none; else with a token;
 * with `--no-token` in any way.
 * @param store directory of all data; `tokenDirectory`: that of the broker's token.
 * @throws BAD_VALUE if the keys are those of another job, or for `--secure` with `--no-token`; as `AuthDirectory`; IO.
 */
export async function openAccess(
  { job, noToken, secure }: AccessFlags,
  store: string,
  tokenDirectory: string,
  output: Output,
): Promise<BrokerAccess> {
  if (secure === undefined) {
    return withToken(noToken === true ? undefined : await keepToken(tokenDirectory));
  }
  if (noToken === true) {
    throw mismatch("BAD_VALUE", "--no-token", "no --secure with it", "both");
  }
  const { AuthDirectory: directories } = await loadAuth();
  const path = secure === true ? join(store, "auth") : secure;
  let auth = await directories.open(path);
  if (auth === undefined) {
    auth = await directories.make(path, { job, trainers: [TRAINER_DEFAULT], names: [] }, false);
    output.message(`made users, permissions and certificates in ${auth.path}`);
  }
  if (!auth.jobs.includes(job)) {
    const expected = `the users of job ${job}, as after "pserver auth add ${shellWord(path)} --job ${job}"`;
    throw mismatch("BAD_VALUE", `--secure ${path}`, expected, `job ${auth.jobs.join(", ")}`);
  }
  return withKeys(auth);
}

function withToken(token: string | undefined): BrokerAccess {
  return {
    config: defined({ extraConfig: token && `authorization { token: "${token}" }` }),
    connect: (connection) => ({ connection: { ...connection, ...defined({ token }) } }),
    clientSettings: defined({ token }),
    hostArguments: [],
    hostVariables: token === undefined ? {} : { NATS_TOKEN: token },
    ...defined({ token }),
  };
}

function withKeys(auth: AuthDirectory): BrokerAccess {
  const [host, answers, ca] = [auth.keyFile("host"), auth.keyFile("answers"), auth.authorityFile];
  const tls = { caFile: ca };
  return {
    config: { authFile: auth.configFile },
    connect: (connection) => ({
      connection: { ...connection, nkeyFile: host, tls },
      answerConnection: { ...connection, nkeyFile: answers, tls },
      acrossAccounts: true,
    }),
    clientSettings: { nkey: host, tlsCa: ca },
    hostArguments: [
      ...["--nkey", host, "--answer-nkey", answers, "--tlsca", ca],
      "--across-accounts",
    ],
    hostVariables: {},
    auth,
  };
}
