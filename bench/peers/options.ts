import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { readRounds } from "../options.ts";

/** What a comparison with other systems is asked for. */
export interface PeersOptions {
  readonly rounds: number;
  readonly json: boolean;
  /** A checkout of ps-lite that has been built; undefined if none was named. */
  readonly psLiteDirectory: string | undefined;
}

const HELP = `usage: make bench-peers PEERS='[--rounds N] [--ps-lite DIR] [--json]'

Makes the same training steps on this parameter server, from TypeScript and from C, on the broker alone,
and on Redis, Ray, PyTorch RPC, TensorFlow and ps-lite where they are installed, in turn. Prints a table
for each step: how long it takes, how many times as long as on the broker alone, and the CPU time of all
processes.

  --rounds N     how often everything is measured (5)
  --ps-lite DIR  a checkout of ps-lite in which \`make ps\` has been run; left out if none is named. Its
                 trainer is compiled with the C++ compiler that CXX names, or else c++, against ps-lite's
                 own ZeroMQ and protobuf in DIR/deps, or else those of the system
  --json         results as one JSON object

PEERS_PYTHON names the Python that runs the peers in Python.`;

/** Reads the command line. @throws an `Error` for what it does not know. */
export function readPeersOptions(
  args: readonly string[],
): PeersOptions | { readonly help: string } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "5" },
      "ps-lite": { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { help: HELP };
  const { json, rounds, "ps-lite": directory } = values;
  if (directory === "") throw new Error("--ps-lite: expected a directory; received nothing");
  const psLiteDirectory = directory === undefined ? undefined : resolve(directory);
  return { rounds: readRounds(rounds), json, psLiteDirectory };
}
