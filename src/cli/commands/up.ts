import { type Command, InvalidArgumentError, Option } from "commander";
import { JOB_DEFAULT } from "../../protocol/names.ts";
import { shellWord } from "../../system/shell-word.ts";
import { addHelp, type CliContext, openLog } from "../context.ts";
import { addBrokerOptions } from "../options/broker-options.ts";
import { addJobOption, addOutputOptions } from "../options/connection-options.ts";
import { addHostOptions } from "../options/host-options.ts";
import { addHttpOptions } from "../options/http-options.ts";
import { wholeNumber } from "../options/parse-values.ts";
import { formatCount } from "../output/amounts.ts";
import type { Paint } from "../output/colors.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { untilAborted } from "../signals.ts";
import { TRAINERS_SHOWN } from "../up/broker-access.ts";
import { addNoTokenOption } from "../up/broker-token.ts";
import type { BrokerReady } from "../up/local-brokers.ts";
import { type LocalServerFlags, type ServerReady, startLocalServer } from "../up/local-server.ts";

/** Flags of `pserver up`. */
interface UpFlags extends LocalServerFlags, OutputFlags {}

/**
 * Runs a broker and hosts until it is interrupted; then stops the hosts and last the broker.
 * @throws the error that kept it from starting, or why no broker or no host is left; ABORTED if it is
 * interrupted before it serves.
 */
async function runUp(context: CliContext, output: Output, flags: UpFlags): Promise<void> {
  const server = await startLocalServer(context, output, flags, { httpPort: HTTP_PORT_DEFAULT });
  try {
    if (output.json) output.value({ ready: true, ...server.ready });
    else output.lines(describeReady(server.ready, output.paint));
    const failed = await Promise.race([untilAborted(context.signal), server.failed]);
    if (failed !== undefined) throw failed;
    output.message("stopping; Ctrl-C again stops at once");
  } finally {
    await server.stop();
  }
}

/** Describes for people what to connect to. */
function describeReady(ready: ServerReady, paint: Paint): string[] {
  const row = (title: string, text: string): string =>
    `  ${paint("faint", title.padEnd(8))} ${text}`;
  return [
    `${paint("ok", "pserver is up")}: job ${paint("strong", ready.job)}`,
    ...ready.brokers.map((broker, index) => row("broker", describeBroker(ready, broker, index))),
    row("hosts", `${formatCount(ready.hosts.length, "host")}: ${ready.hosts.join(", ")}`),
    row("store", ready.store),
    row("models", ready.modelDirectory),
    ...(ready.http === undefined ? [] : [row("page", ready.http)]),
    ...describeAccess(ready).map(([title, text]) => row(title, text)),
    "Ctrl-C stops it; started again on the same store it goes on where it was.",
  ];
}

function describeBroker({ brokers }: ServerReady, broker: BrokerReady, index: number): string {
  const { url, version, store, log, routesPort } = broker;
  if (routesPort === undefined) return `${url}  (nats-server ${version})`;
  const more = `routes at port ${routesPort}, store ${store}, log ${log}`;
  return `${index + 1} of ${brokers.length}: ${url}  (nats-server ${version}), ${more}`;
}

/** Describes how clients get in, and how to look at the job. */
function describeAccess(ready: ServerReady): [title: string, text: string][] {
  const { url, job, tokenFile, trainers } = ready;
  const look = `pserver status --url ${url}${job === JOB_DEFAULT ? "" : ` --job ${job}`}`;
  if (trainers !== undefined) {
    const files = Object.values(trainers).slice(0, TRAINERS_SHOWN);
    const connects = files.map((file): [string, string] => {
      return ["trainer", `set -a; . ${shellWord(file)}; PSERVER_URL=${url}; set +a`];
    });
    return [...connects, ["look", `${look} --trainer observer, with observer.env likewise`]];
  }
  const token =
    tokenFile === undefined
      ? "none: every user of this machine may change the model"
      : `in ${tokenFile}; programs of this user find it by themselves`;
  return [
    ["token", token],
    ["look", look],
  ];
}

const PORT_DEFAULT = 4222;

/** Port of HTTP; any free one is taken if another process has it. */
export const HTTP_PORT_DEFAULT = 4280;
const HOSTS_MAX = 64;

/** Numbers of brokers that a cluster may have: of an even number, no more may fail than of one less. */
const CLUSTERS = [3, 5];

function parseCluster(text: string): number {
  const count = CLUSTERS.find((each) => String(each) === text);
  if (count !== undefined) return count;
  throw new InvalidArgumentError(`expected 3 or 5; received ${JSON.stringify(text)}`);
}

/** Adds the command `pserver up`, which runs a broker and hosts on this machine until Ctrl-C. */
export function registerUp(program: Command, context: CliContext): void {
  const command = program
    .command("up")
    .summary("start a broker and hosts on this machine")
    .description("start a broker and one or more hosts on this machine, until Ctrl-C")
    .option(
      "--port <n>",
      "port of the broker; 0 takes any free one",
      wholeNumber(0, 65_535),
      PORT_DEFAULT,
    )
    .option("--store <dir>", "directory of all data", ".pserver")
    .option(
      "--hosts <n>",
      "number of hosts; the first runs in this process, the others in their own",
      wholeNumber(1, HOSTS_MAX),
      1,
    )
    .addOption(
      new Option(
        "--cluster <n>",
        "start so many brokers, each with a copy of all data, to try and to test: 3 or 5",
      ).argParser(parseCluster),
    )
    .option(
      "--secure [dir]",
      'let in only users that "pserver auth init" has made there, by TLS; made if there are none (default: STORE/auth)',
    );
  addNoTokenOption(
    addHttpOptions(addBrokerOptions(command), `${HTTP_PORT_DEFAULT}, or a free one`),
  );
  addOutputOptions(addHostOptions(addJobOption(command), "STORE/models")).action((flags: UpFlags) =>
    runUp(context, openLog(context, flags), flags),
  );
  addHelp(command, {
    "When it ends": [
      "  Ctrl-C stops the hosts, then the broker, and exits with 0, or with 130 before it serves;",
      "  a second Ctrl-C stops at once, with 130. With --journal memory the hosts store everything",
      "  first, so that it is there when they are started again. A broker or host that dies is",
      "  started again, up to five times in a row; meanwhile the other hosts take its shards.",
      "  Without any host left it exits.",
    ],
    "With --json": [
      '  One line once it serves: {"ready":true,"url","job","hosts","store",',
      '  "modelDirectory","brokers":[{"url","pid","version","store","log","routesPort"}],"tokenFile",',
      '  "trainers":{ID:FILE},"http"}, without what does not apply.',
    ],
    Examples: [
      "  pserver up",
      "  pserver up --job mnist --port 0 --store /data/mnist --hosts 3 --json",
      "  pserver up --durable --shards 32",
      "  pserver up --broker-memory 2GiB",
      "  pserver up --cluster 3 --secure",
      "  pserver up --job mnist --sync sync --trainers 4 --backups 1",
    ],
  });
}
