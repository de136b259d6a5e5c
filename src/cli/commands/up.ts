import type { Command } from "commander";
import { type CliContext, openLog } from "../context.ts";
import { addHelp } from "../help-text.ts";
import { addJobOption } from "../options/connection-options.ts";
import { addHostOptions } from "../options/host-options.ts";
import { addOutputOptions } from "../options/output-options.ts";
import { wholeNumber } from "../options/parse-values.ts";
import { runUp, type UpFlags } from "../up/run-up.ts";

const PORT_DEFAULT = 4222;
const HOSTS_MAX = 64;

/** `pserver up`: a broker and hosts on this machine, until Ctrl-C. */
export function registerUp(program: Command, context: CliContext): void {
  const command = program
    .command("up")
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
    .option("--durable", "acknowledged updates also survive a power loss; slower");
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
      '  "modelDirectory","broker":{"pid","version"}}.',
    ],
    Examples: [
      "  pserver up",
      "  pserver up --job mnist --port 0 --store /data/mnist --hosts 3 --json",
      "  pserver up --durable --shards 32",
      "  pserver up --job mnist --sync sync --trainers 4 --backups 1",
    ],
  });
}
