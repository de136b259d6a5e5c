import { Argument, type Command } from "commander";
import type { AuthDirectory } from "../../broker/auth/auth-directory.ts";
import { mismatch, visible } from "../../protocol/errors.ts";
import { ADMIN_ID, OBSERVER_ID } from "../../protocol/permissions.ts";
import { shellWord } from "../../system/shell-word.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import { addJobOption, addOutputOptions } from "../options/connection-options.ts";
import { parseId } from "../options/parse-values.ts";
import { formatCount } from "../output/amounts.ts";
import type { OutputFlags } from "../output/output.ts";
import { loadAuth, TRAINER_DEFAULT, TRAINERS_SHOWN } from "../up/broker-access.ts";

/** What can be done with a directory. */
const ACTIONS = ["init", "add"] as const;
/** One of {@link ACTIONS}. */
type Action = (typeof ACTIONS)[number];

/** Flags of `pserver auth`. */
interface AuthFlags extends OutputFlags {
  readonly job: string;
  readonly trainer?: readonly string[];
  readonly name?: readonly string[];
  readonly force?: boolean;
}

/** `hasJob`: whether the job was named on the command line, not only by the environment. */
async function runAuth(
  action: Action,
  path: string,
  flags: AuthFlags,
  hasJob: boolean,
): Promise<AuthDirectory> {
  const { AuthDirectory: directories } = await loadAuth();
  const { job, trainer: trainers, name: names = [], force = false } = flags;
  if (action === "init") {
    const settings = { job, trainers: trainers ?? [TRAINER_DEFAULT], names };
    return await directories.make(path, settings, force);
  }
  const present = await directories.open(path);
  if (present === undefined) {
    throw mismatch("BAD_VALUE", path, 'the files of "pserver auth init"', "none");
  }
  if (trainers === undefined && !hasJob) {
    const expected = "--trainer ID, once or more, or --job NAME";
    throw mismatch("BAD_VALUE", "pserver auth add", expected, "neither");
  }
  return await present.add({ trainers: trainers ?? [], jobs: hasJob ? [job] : [] });
}

/** Says what is in the directory, and how to use it. */
function describeAuth(action: Action, auth: AuthDirectory): string[] {
  const { path, jobs, trainers } = auth;
  const users = [...trainers.slice(0, TRAINERS_SHOWN), OBSERVER_ID, ADMIN_ID];
  const more = trainers.length - TRAINERS_SHOWN;
  const next =
    action === "init"
      ? `start:  pserver up --secure ${shellWord(path)} --job ${jobs[0]}`
      : "A broker that runs takes that after:  nats-server --signal reload";
  return [
    `${path}: users, permissions and TLS of job ${jobs.join(", ")}`,
    ...users.map((id) => `  ${visible(id)}: ${auth.variablesFile(id)}`),
    ...(more > 0 ? [`  ${formatCount(more, "more trainer")} likewise`] : []),
    next,
  ];
}

/** Collects the values of a flag that may be repeated. */
function collect(parse: (text: string) => string) {
  return (text: string, before: readonly string[] = []): readonly string[] => {
    return [...before, parse(text)];
  };
}

/** Adds the command `pserver auth`, which makes the keys, permissions and certificates of a broker. */
export function registerAuth(program: Command, context: CliContext): void {
  const command = program
    .command("auth")
    .summary("make users, permissions and TLS for a job")
    .description("make a broker configuration with the users of a job, their permissions, and TLS")
    .addArgument(
      new Argument("<action>", "init makes it; add adds trainers, or a job").choices(ACTIONS),
    )
    .argument("<dir>", "directory of all files");
  addJobOption(command)
    .option(
      "--trainer <id>",
      `a trainer that may join; may be repeated (default: ${TRAINER_DEFAULT})`,
      collect(parseId),
    )
    .option(
      "--name <host>",
      "a name or address of the broker besides localhost; may be repeated",
      collect((text) => text),
    )
    .option("--force", "with init: replace what is there; all keys are then new ones");
  addOutputOptions(command).action(async (action: Action, path: string, flags: AuthFlags) => {
    const output = openOutput(context, flags);
    const hasJob = command.getOptionValueSource("job") === "cli";
    const auth = await runAuth(action, path, flags, hasJob);
    const { jobs, trainers, configFile, authorityFile } = auth;
    if (output.json) {
      output.value({ directory: auth.path, jobs, trainers, configFile, authorityFile });
    } else output.lines(describeAuth(action, auth));
  });
  addHelp(command, {
    "What it makes": [
      "  broker.conf, which a broker includes: everybody is denied everything that is not listed.",
      "  Users are known by nkeys: host and answers for hosts, admin, observer, and a user for each",
      "  trainer, who may act under its own id only. ca.pem and server.pem: an authority and a",
      "  certificate of it for the broker, made with openssl, valid for ten years. Only you may read",
      "  the files.",
    ],
    "How a trainer connects": [
      "  With the variables in DIR/trainers/ID.env, and PSERVER_URL=tls://HOST:PORT. On another machine it",
      "  needs its key and ca.pem, and their paths there.",
    ],
    "More jobs": [
      "  add --job NAME gives all users the same rights in another job at the same broker, such as a",
      "  fork; start hosts for it with the same directory. A job with other users has its own directory.",
    ],
    "With --json": ['  {"directory","jobs","trainers","configFile","authorityFile"}.'],
    Examples: [
      "  pserver auth init .pserver/auth --job mnist --trainer a --trainer b",
      "  pserver auth init /etc/pserver --name broker.example.org --name 10.0.0.5",
      "  pserver auth add .pserver/auth --trainer trainer-3",
      "  pserver auth add .pserver/auth --job mnist-2",
    ],
  });
}
