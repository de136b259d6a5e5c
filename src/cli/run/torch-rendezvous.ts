import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { mismatch } from "../../protocol/mismatch.ts";
import type { RunFlags } from "./run-flags.ts";
import type { TrainerPlace, Variables } from "./trainer-variables.ts";

/** Where torch.distributed's trainers meet: the machine of rank 0, and a port that is free there. */
export interface Rendezvous {
  readonly address: string;
  readonly port: number;
}

/** Ports below those that systems give to outgoing connections, so that none of these takes the port meanwhile. */
const PORTS = { first: 20_000, count: 12_000 } as const;

/**
 * A shell program that sets `port` to a free one of this machine. It knows which are in use where there is a
 * Linux kernel to tell. Like the guard it has nothing in it that a login shell could stumble over.
 */
export const FREE_PORT_PROGRAM = [
  'used=" $(echo $(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |' +
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
    ' while read -r number here rest; do echo "${here##*:}"; done)) "',
  `port=$((${PORTS.first} + ($$ * 7919 + $(date +%s)) % ${PORTS.count}))`,
  'while case "$used" in *" $(printf %04X "$port") "*) ;; *) false ;; esac; do port=$((port + 1)); done',
].join("; ");

/**
 * Checks that the flags leave all trainers what torch.distributed needs.
 * @throws BAD_VALUE for flags that `--torch-env` excludes.
 */
export function checkTorchFlags({ torchEnv, devices, maxSimultaneous, instances }: RunFlags): void {
  if (torchEnv !== true) return;
  if (devices !== undefined) {
    const expected = "no --torch-env with it, where LOCAL_RANK selects the device";
    throw mismatch("BAD_VALUE", "--devices", expected, "both");
  }
  if (maxSimultaneous !== undefined && maxSimultaneous < instances) {
    const expected = `${instances} with --torch-env, whose trainers wait for each other`;
    throw mismatch("BAD_VALUE", "--max-simultaneous", expected, maxSimultaneous);
  }
}

/** A free port of this machine. @throws IO if this machine lets nobody listen on loopback. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port), "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}

/** The names that torch.distributed and accelerate read, with the values that torchrun would give them. */
export function torchVariables(
  { rank, localRank, localCount, machine, machineCount }: TrainerPlace,
  { instances }: RunFlags,
  { address, port }: Rendezvous,
): Variables {
  return {
    MASTER_ADDR: address,
    MASTER_PORT: String(port),
    RANK: String(rank),
    WORLD_SIZE: String(instances),
    LOCAL_RANK: String(localRank),
    LOCAL_WORLD_SIZE: String(localCount),
    GROUP_RANK: String(machine),
    GROUP_WORLD_SIZE: String(machineCount),
    ...OUTER_TORCHRUN,
  };
}

/** Of a torchrun around the launcher: trainers would look for its store at the address of ours. */
export const OUTER_TORCHRUN: Variables = {
  TORCHELASTIC_RUN_ID: undefined,
  TORCHELASTIC_USE_AGENT_STORE: undefined,
};
