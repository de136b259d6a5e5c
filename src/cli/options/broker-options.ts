import type { Command } from "commander";
import { BROKER_MEMORY_MIN_MIB } from "../../broker/broker-memory.ts";
import { sizeOfAtLeast } from "./parse-values.ts";

/** Flags of a broker that a command starts; each is undefined unless given. */
export interface BrokerFlags {
  readonly durable?: boolean;
  /** Bytes. */
  readonly brokerMemory?: number;
}

/** Adds the flags of a broker that the command starts. */
export function addBrokerOptions(command: Command): Command {
  return command
    .option("--durable", "acknowledged updates also survive a power loss; slower")
    .option(
      "--broker-memory <size>",
      "most memory of the broker (default: GOMEMLIMIT, or a quarter of what the machine or the container has)",
      sizeOfAtLeast(BROKER_MEMORY_MIN_MIB),
    );
}
