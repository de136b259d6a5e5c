import { setTimeout as delay } from "node:timers/promises";
import { Bed } from "./bed.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { cpuSeconds, peakBytes, resetPeak } from "./process-usage.ts";
import type { CommandRunner } from "./programs/commands.ts";
import type { JournalFiller } from "./programs/journal-filler.ts";
import type { Model } from "./programs/trainer.ts";
import { type Spread, spread } from "./statistics.ts";

/** Time and memory of a command of the debugger, over several runs. */
export interface CommandUsage {
  readonly name: string;
  /** Bytes of the journals, and the updates in them. */
  readonly journalMb: number;
  readonly updates: number;
  readonly seconds: Spread;
  /** Updates for each second that passed, and for each second of processor time. */
  readonly perSecond: Spread;
  readonly perCpuSecond: Spread;
  /** The largest peak of its process. */
  readonly peakMb: number;
  /** Updates a second to reach; undefined if none. */
  readonly target?: number;
}

const JOB = "debugged";
const SHARDS = 4;

/** Journals that no snapshot shortens. */
const HOST = { shards: SHARDS, retainBytes: 1e12, snapshotBytes: 1e12, journalBytesMax: 4e9 };

const PARAMETERS = 16;

/** Updates a second that `log` prints from the tape. */
const LOG_TARGET = 100_000;
/** Number of updates: so many that the start of the command, half a second, does not decide. */
const LOG_UPDATES = 200_000;
const LOG_BYTES = 64;

/** Records of the journals whose length is to make no difference to memory. */
const MEMORY_BYTES = 256 * 1024;

/** Time in which a host writes the last lines of the tape; without them, `log` would fold the journal. */
const TAPE_MS = 3_000;

/** Longest time of one command. */
const COMMAND_MS = 20 * 60_000;

/**
 * Measures how fast `log` prints, and how much memory commands take for journals of different
 * lengths.
 */
export async function benchDebugger(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<CommandUsage[]> {
  const found: CommandUsage[] = [];
  const logs = ["log from the tape", "log from the tape, JSON"];
  if (logs.some((name) => isWanted(options, name))) {
    found.push(
      ...(await withJournals(
        options,
        { recordBytes: LOG_BYTES, updates: LOG_UPDATES },
        async (job) => [
          await job.measure("log from the tape", ["log"], LOG_TARGET),
          await job.measure("log from the tape, JSON", ["log", "--json"], LOG_TARGET),
        ],
      )),
    );
  }
  for (const journalBytes of options.journalBytes) {
    const name = `debugger memory, ${journalBytes / 1e6} MB of journals`;
    if (!isWanted(options, name)) continue;
    const journals = { recordBytes: MEMORY_BYTES, updates: journalBytes / MEMORY_BYTES };
    found.push(
      ...(await withJournals(options, journals, async (job) => [
        await job.measure(`${name}, log`, ["log"]),
        await job.measure(`${name}, replay`, ["replay", "--to", "now"]),
        await job.measure(`${name}, verify`, ["verify"]),
      ])),
    );
  }
  return found;
}

/** A job whose journals and tape are filled. */
interface FilledJob {
  measure(name: string, command: readonly string[], target?: number): Promise<CommandUsage>;
}

async function withJournals(
  options: BenchOptions & { readonly log: (line: string) => void },
  { recordBytes, updates }: { readonly recordBytes: number; readonly updates: number },
  use: (job: FilledJob) => Promise<CommandUsage[]>,
): Promise<CommandUsage[]> {
  const bed = await Bed.open(options.profileDirectory);
  try {
    await bed.startHost(JOB, "file", HOST);
    const trainer = await bed.startTrainer(JOB, "trainer");
    const model: Model = { prefix: "p", parameters: PARAMETERS, shape: [recordBytes / 4] };
    await trainer.call("create", model);
    await trainer.call("run", { model, operation: "mix", durationMs: 0 });
    const filler = bed.start<JournalFiller>("journal-filler");
    const records = Math.ceil(updates / SHARDS);
    const filling = { url: bed.broker.url, job: JOB, shards: SHARDS, records };
    const bytes = await filler.call("fill", filling, COMMAND_MS);
    // It is answered when the host has folded what came before. The first trainer's session has ended: the filler's
    // updates are of a later one.
    const last = await bed.startTrainer(JOB, "last");
    await last.call("run", { model, operation: "mix", durationMs: 0 });
    await delay(TAPE_MS);
    const measure: FilledJob["measure"] = async (name, [command = "", ...args], target) => {
      options.log(name);
      const line = [command, "--url", bed.broker.url, "--job", JOB, ...args];
      const found = await measureCommand(bed, line, updates, options.rounds);
      return {
        ...{ name, journalMb: bytes / 1e6, updates, ...found },
        ...(target !== undefined && { target }),
      };
    };
    return await use({ measure });
  } finally {
    await bed.close();
  }
}

/** Runs a command in a process of its own each time, after a run that lets it be compiled. */
async function measureCommand(
  bed: Bed,
  line: readonly string[],
  updates: number,
  rounds: number,
): Promise<Pick<CommandUsage, "seconds" | "perSecond" | "perCpuSecond" | "peakMb">> {
  const [seconds, perSecond, perCpuSecond]: [number[], number[], number[]] = [[], [], []];
  let peakMb = 0;
  for (let round = 0; round < rounds; round++) {
    const runner = bed.start<CommandRunner>("commands");
    await runner.call("run", ["help", "log"]);
    resetPeak(runner.pid);
    const beforeSeconds = cpuSeconds(runner.pid);
    const { elapsedMs } = await runner.call("run", line, COMMAND_MS);
    seconds.push(elapsedMs / 1e3);
    perSecond.push((1e3 * updates) / elapsedMs);
    perCpuSecond.push(updates / (cpuSeconds(runner.pid) - beforeSeconds));
    peakMb = Math.max(peakMb, peakBytes(runner.pid) / 1e6);
    await runner.stop();
  }
  return {
    seconds: spread(seconds),
    perSecond: spread(perSecond),
    perCpuSecond: spread(perCpuSecond),
    peakMb,
  };
}
