import type { Command } from "commander";
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
import { addNoTokenOption } from "../up/broker-token.ts";
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
    row("broker", `${paint("strong", ready.url)}  (nats-server ${ready.broker.version})`),
    row("hosts", `${formatCount(ready.hosts.length, "host")}: ${ready.hosts.join(", ")}`),
    row("store", ready.store),
    row("models", ready.modelDirectory),
    row("token", describeToken(ready)),
    ...(ready.http === undefined ? [] : [row("http", `${ready.http}/metrics, /readyz, /api/jobs`)]),
    row(
      "look",
      `pserver status --url ${ready.url}${ready.job === "default" ? "" : ` --job ${ready.job}`}`,
    ),
    "Ctrl-C stops it; started again on the same store it goes on where it was.",
  ];
}

function describeToken({ tokenFile }: ServerReady): string {
  if (tokenFile === undefined) return "none: every user of this machine may change the model";
  return `in ${tokenFile}; programs of this user find it by themselves`;
}

const PORT_DEFAULT = 4222;

/** Port of HTTP; any free one is taken if another process has it. */
const HTTP_PORT_DEFAULT = 4280;
const HOSTS_MAX = 64;

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
      '  "modelDirectory","broker":{"pid","version"},"tokenFile","http"}, without tokenFile if clients need none,',
      "  and without http if that is off.",
    ],
    Examples: [
      "  pserver up",
      "  pserver up --job mnist --port 0 --store /data/mnist --hosts 3 --json",
      "  pserver up --durable --shards 32",
      "  pserver up --broker-memory 2GiB",
      "  pserver up --job mnist --sync sync --trainers 4 --backups 1",
    ],
  });
}
