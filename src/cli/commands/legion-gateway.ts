import { type Command, Option } from "commander";
import { addHelp, type CliContext, openLog } from "../context.ts";

import { type GatewayFlags, runGateway } from "../legion-gateway/run-gateway.ts";
import { addAskingOptions } from "../options/connection-options.ts";
import { parseTimeout, sizeOfAtLeast, wholeNumber } from "../options/parse-values.ts";

const TIMEOUT_MS = 30_000;
const IDLE_MS = 12 * 60 * 60 * 1_000;
const STALL_MS = 60_000;
const MEMORY_MIB_MIN = 16;
const CONNECTIONS_MAX = 4_096;

/** `pserver legion-gateway`: serves trainers that were written for Legion. */
export function registerLegionGateway(program: Command, context: CliContext): void {
  const command = program
    .command("legion-gateway")
    .description("serve trainers that speak Legion's protocol, until Ctrl-C")
    .option("--listen <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535), 0)
    .option(
      "--max-connections <n>",
      "trainers at once; more are refused",
      wholeNumber(1, CONNECTIONS_MAX),
      256,
    )
    .addOption(
      new Option(
        "--max-memory <size>",
        "most memory for arrays in transfer, of all trainers together",
      )
        .argParser(sizeOfAtLeast(MEMORY_MIB_MIN))
        .default(1024 ** 3, "1GiB"),
    )
    .addOption(
      new Option(
        "--idle-timeout <duration>",
        "disconnect trainers that send no request for this long",
      )
        .argParser(parseTimeout)
        .default(IDLE_MS, "12h"),
    )
    .addOption(
      new Option(
        "--stall-timeout <duration>",
        "disconnect trainers that stop within a request or a reply for this long",
      )
        .argParser(parseTimeout)
        .default(STALL_MS, "60s"),
    );
  addAskingOptions(command, TIMEOUT_MS).action((flags: GatewayFlags) =>
    runGateway(context, openLog(context, flags), flags),
  );
  addHelp(command, {
    "What it does": [
      "  An old client works unchanged: its Client() finds the gateway by legion_server_ip and",
      "  legion_server_port, which are printed. Pushes of one trainer are applied in their order.",
      "  Legion's protocol cannot tell errors: a trainer whose request fails is disconnected, and the",
      "  reason is in the log here. Nobody is asked for a password: see docs/legion.md.",
    ],
    "With --json": ['  One line once it serves: {"ready":true,"address","port","job"}.'],
    Examples: [
      "  pserver legion-gateway",
      "  pserver legion-gateway --job mnist --listen 10.0.0.5 --port 5700 --max-memory 8GiB",
    ],
  });
}
