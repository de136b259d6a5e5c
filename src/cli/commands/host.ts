import type { Command } from "commander";
import { type CliContext, openLog } from "../context.ts";
import { addHelp } from "../help-text.ts";
import { type RunHostFlags, runHost } from "../host/run-host.ts";
import { addAnswerOptions } from "../options/answer-options.ts";
import { addConnectionOptions, addJobOption } from "../options/connection-options.ts";
import { addHostOptions } from "../options/host-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { parseId, wholeNumber } from "../options/parse-values.ts";

/** The most copies that JetStream keeps of a stream. */
const REPLICAS_MAX = 5;

/** `pserver host`: one more host of a job, on a broker that runs already. */
export function registerHost(program: Command, context: CliContext): void {
  const command = program
    .command("host")
    .description("join a job as a host, on a broker that runs already, until Ctrl-C")
    .option("--id <id>", "the host's id (default: generated)", parseId);
  addAnswerOptions(addConnectionOptions(command));
  addOutputOptions(addHostOptions(addJobOption(command), ".pserver/models"))
    .option(
      "--replicas <n>",
      "copies of all data of a new job, on a cluster of brokers (default: 1)",
      wholeNumber(1, REPLICAS_MAX),
    )
    .action((flags: RunHostFlags) => runHost(context, openLog(context, flags), flags));
  addHelp(command, {
    "With --json": ['  One line once it serves: {"ready":true,"id","job","shards"}.'],
    Examples: [
      "  pserver host --url nats://broker:4222",
      "  pserver host --url nats://broker:4222 --job mnist --id host-b --model-dir /models",
      "  pserver host --url nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3",
      "  pserver host --job mnist --sync ssp --trainers 4 --staleness 3",
      "  pserver host --job mnist --etcd http://etcd:2379 --etcd-prefix /mnist",
      "  pserver host --nkey control.nk --answer-nkey answer.nk",
    ],
  });
}
