import { resolve } from "node:path";
import type { Command } from "commander";
import type { ReportingHost } from "../../actors/host/host.ts";
import { resolveSettings } from "../../client/wire/broker-settings.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import { defined } from "../../protocol/fields.ts";
import { OBSERVER_ID } from "../../protocol/permissions.ts";
import { addHelp, type CliContext, openLog } from "../context.ts";
import { hostEventPrinter } from "../host-events.ts";
import {
  type AnswerFlags,
  addAnswerOptions,
  addConnectionOptions,
  addJobOption,
  addOutputOptions,
  type ConnectionFlags,
  toAnswerConnection,
  toOverrides,
} from "../options/connection-options.ts";
import { addHostOptions, type HostFlags, toHostSettings } from "../options/host-options.ts";
import { addHttpOptions, type HttpFlags, toHttpSetting } from "../options/http-options.ts";
import { parseId, wholeNumber } from "../options/parse-values.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import type { HttpService } from "../serve-http.ts";
import { unlessAborted, untilAborted } from "../signals.ts";

/** Flags of `pserver host`. */
interface RunHostFlags extends HostFlags, HttpFlags, ConnectionFlags, AnswerFlags, OutputFlags {
  readonly job: string;
  readonly id?: string;
  readonly replicas?: number;
}

const MODEL_DIRECTORY = ".pserver/models";

/**
 * Runs one host until it is interrupted.
 * @throws the error that kept it from starting, or that ended it; ABORTED if it is interrupted before it
 *   serves.
 */
async function runHost(context: CliContext, output: Output, flags: RunHostFlags): Promise<void> {
  const { environment } = context;
  const setting = toHttpSetting(flags, undefined);
  if (setting === undefined) return await serveHost(context, output, flags, undefined);
  // Loaded here, so that other commands start faster.
  const { serveHttp } = await import("../serve-http.ts");
  const broker = toOverrides(flags);
  const access = { broker, environment, asker: OBSERVER_ID };
  const http = await serveHttp(setting, flags.job, () => access, output);
  try {
    await serveHost(context, output, flags, http);
  } finally {
    await http.close();
  }
}

async function serveHost(
  context: CliContext,
  output: Output,
  flags: RunHostFlags,
  http: HttpService | undefined,
): Promise<void> {
  const { signal, tellStarter } = context;
  const modelDirectory = resolve(flags.modelDir ?? MODEL_DIRECTORY);
  const connection = resolveSettings(toOverrides(flags), context.environment);
  const answerConnection = toAnswerConnection(flags, connection);
  const { id: wantedId, replicas } = flags;
  await makeDirectories(modelDirectory);
  // Loaded here, so that other commands start faster.
  const { startHost } = await import("../../actors/host/start-host.ts");
  const host = await unlessAborted(
    signal,
    startHost({
      connection,
      ...toHostSettings({ ...flags, modelDir: modelDirectory }),
      ...defined({ answerConnection, id: wantedId, replicas, countsTrainers: flags.httpTrainers }),
      onEvent: hostEventPrinter(output),
      ...((http ?? tellStarter) && {
        onReporting: (reporting: ReportingHost) => {
          http?.hosts.set("host", reporting);
          if (tellStarter !== undefined) tellReports(reporting, tellStarter, signal);
        },
      }),
    }),
  );
  const { id } = host;
  const { shards } = host.settings;
  const { job } = flags;
  const { url } = http ?? {};
  if (output.json) output.value({ ready: true, id, job, shards, ...defined({ http: url }) });
  else {
    output.lines([`host ${id} serves job ${job} (${shards} shards in all); Ctrl-C stops it`]);
    if (url !== undefined) output.message(`metrics are at ${url}/metrics`);
  }
  const reason = await Promise.race([untilAborted(signal), host.stopped]);
  if (reason !== undefined) throw reason;
  output.message("stopping; Ctrl-C again stops at once");
  await host.close();
}

/** How often the command that has started a host gets its report. */
const REPORT_MS = 1_000;

/** Tells the command that has started a host how that is, again and again, until `signal` is aborted. */
function tellReports(
  host: ReportingHost,
  tell: NonNullable<CliContext["tellStarter"]>,
  signal: AbortSignal,
): void {
  let isTelling = false;
  const timer = setInterval(() => {
    // A reader that hangs gets no further report until it has read the last.
    if (isTelling) return;
    isTelling = true;
    void tell({ report: host.report() }).then(() => {
      isTelling = false;
    });
  }, REPORT_MS);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

/** The most copies that JetStream keeps of a stream. */
export const REPLICAS_MAX = 5;

/** Adds the command `pserver host`, which runs one more host of a job, on a broker that runs already. */
export function registerHost(program: Command, context: CliContext): void {
  const command = program
    .command("host")
    .summary("join a job as a host, on a broker that runs already")
    .description("join a job as a host, on a broker that runs already, until Ctrl-C")
    .option("--id <id>", "the host's id (default: generated)", parseId);
  addAnswerOptions(addConnectionOptions(command));
  addHttpOptions(command, "off");
  addOutputOptions(addHostOptions(addJobOption(command), ".pserver/models"))
    .option(
      "--replicas <n>",
      "copies of all data of a new job, on a cluster of brokers (default: 1)",
      wholeNumber(1, REPLICAS_MAX),
    )
    .action((flags: RunHostFlags) => runHost(context, openLog(context, flags), flags));
  addHelp(command, {
    "With --json": [
      '  One line once it serves: {"ready":true,"id","job","shards","http"}, the last with --http.',
    ],
    Examples: [
      "  pserver host --url nats://broker:4222",
      "  pserver host --url nats://broker:4222 --job mnist --model-dir /models",
      "  pserver host --url nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3",
      "  pserver host --job mnist --sync ssp --trainers 4 --staleness 3",
      "  pserver host --job mnist --etcd http://etcd:2379 --etcd-prefix /mnist",
      "  pserver host --nkey control.nk --answer-nkey answer.nk",
      "  pserver host --http 9100",
      "  pserver host --http 0.0.0.0:9100 --http-token token.txt",
    ],
  });
}
