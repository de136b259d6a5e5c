import { type Command, Option } from "commander";
import { defined } from "../../protocol/defined.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";

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

/** Connection settings of the user that answers trainers; undefined if none is given. */
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
