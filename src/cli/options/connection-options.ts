import { type Command, Option } from "commander";
import type { ConnectionOverrides } from "../../client/wire/broker-settings.ts";
import { defined } from "../../protocol/fields.ts";
import { JOB_DEFAULT } from "../../protocol/names.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { OutputFlags } from "../output/output.ts";
import { parseId, parseJob, parseTimeout } from "./parse-values.ts";

/** Flags that say how to reach the broker; each is undefined unless given. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  readonly creds?: string;
  readonly nkey?: string;
  readonly tlscert?: string;
  readonly tlskey?: string;
  readonly tlsca?: string;
  readonly context?: string;
}

/** Flags of a command that works with a job. */
export interface JobFlags extends ConnectionFlags {
  readonly job: string;
  /** Longest wait in milliseconds; each command says for what. */
  readonly timeout: number;
}

/** Flags of a command that speaks to hosts as a trainer does. */
export interface TrainerFlags extends JobFlags {
  readonly trainer?: string;
}

/** Adds the flags that say how to reach the broker. */
export function addConnectionOptions(command: Command): Command {
  return command
    .option("--url <urls>", "the broker, or several with commas (PSERVER_URL, NATS_URL)")
    .option("--user <name>", "user name (NATS_USER)")
    .option("--password <password>", "password (NATS_PASSWORD, which hides it from other users)")
    .option("--token <token>", "token (NATS_TOKEN, which hides it from other users)")
    .option("--creds <file>", "credentials file (NATS_CREDS)")
    .option("--nkey <file>", "file with an nkey seed (NATS_NKEY)")
    .option("--tlscert <file>", "certificate of this client (NATS_CERT)")
    .option("--tlskey <file>", "its private key (NATS_KEY)")
    .option("--tlsca <file>", "certificates to trust (NATS_CA)")
    .option("--context <name>", "a context of the nats command (NATS_CONTEXT)");
}

/** Returns the flags that are given under the names of the client's settings. */
export function toOverrides(flags: ConnectionFlags): ConnectionOverrides {
  const { url, user, password, token, creds, nkey, tlscert, tlskey, tlsca, context } = flags;
  return defined({
    ...{ url, user, password, token, creds, nkey, context },
    ...{ tlsCert: tlscert, tlsKey: tlskey, tlsCa: tlsca },
  });
}

/** Adds `--job`. */
export function addJobOption(command: Command): Command {
  return command.addOption(
    new Option("--job <name>", "the job")
      .argParser(parseJob)
      .env("PSERVER_JOB")
      .default(JOB_DEFAULT),
  );
}

/** Adds the flags of a command that works with a job; `timeoutMs` is the default of `--timeout`. */
export function addJobOptions(command: Command, timeoutMs: number): Command {
  return addTimeoutOption(addJobOption(addConnectionOptions(command)), timeoutMs);
}

/** Adds `--timeout`, with a default. */
export function addTimeoutOption(command: Command, timeoutMs: number): Command {
  return command.addOption(
    new Option("--timeout <duration>", "longest wait for an answer: 500ms, 5s, 2m")
      .argParser(parseTimeout)
      .default(timeoutMs, `${timeoutMs / 1000}s`),
  );
}

/** Adds `--trainer`, the id that the broker's permissions may be bound to. */
export function addTrainerOption(command: Command): Command {
  return command.option(
    "--trainer <id>",
    "the id to appear under (default: cli-HOST-PID)",
    parseId,
  );
}

/** Adds the flags for the output of a command. */
export function addOutputOptions(command: Command): Command {
  return command
    .option("-j, --json", "print data, warnings and errors as JSON, one value a line")
    .option("--no-color", "no colours, as with the variable NO_COLOR");
}

/** Flags of a command that asks the hosts of a job and prints the answer. */
export interface AskingFlags extends TrainerFlags, OutputFlags {}

/** Adds the flags of a command that asks hosts; `timeoutMs` is the default of `--timeout`. */
export function addAskingOptions(command: Command, timeoutMs: number): Command {
  return addOutputOptions(addTrainerOption(addJobOptions(command, timeoutMs)));
}

/** Credentials of the connections on which a host answers trainers; each is undefined unless given. */
export interface AnswerFlags {
  readonly answerCreds?: string;
  readonly answerNkey?: string;
  readonly answerUser?: string;
  readonly answerPassword?: string;
}

/** Adds the credentials of a host's second user, which answers trainers. */
export function addAnswerOptions(command: Command): Command {
  return command
    .option("--answer-creds <file>", "credentials file of the user that answers trainers")
    .option("--answer-nkey <file>", "file with that user's nkey seed")
    .option("--answer-user <name>", "that user's name (default: one user does everything)")
    .addOption(
      new Option(
        "--answer-password <password>",
        "its password, which the variable hides from other users",
      ).env("PSERVER_ANSWER_PASSWORD"),
    );
}

/** Returns the connection settings of the user that answers trainers; undefined if none is given. */
export function toAnswerConnection(
  flags: AnswerFlags,
  { servers, tls, timeoutMs }: ConnectionSettings,
): ConnectionSettings | undefined {
  const { answerCreds, answerNkey, answerUser, answerPassword } = flags;
  if ((answerCreds ?? answerNkey ?? answerUser) === undefined) return undefined;
  return {
    servers,
    timeoutMs,
    ...defined({
      tls,
      credsFile: answerCreds,
      nkeyFile: answerNkey,
      user: answerUser,
      password: answerPassword,
    }),
  };
}
