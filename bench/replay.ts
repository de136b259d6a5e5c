import { Bed } from "./bed.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { peakBytes, resetPeak } from "./process-usage.ts";
import type { Replayer } from "./programs/replayer.ts";
import type { Model } from "./programs/trainer.ts";
import { type Spread, spread } from "./statistics.ts";

/** How fast the journals of a job are replayed, compared with reading them by ordered consumers alone. */
export interface ReplaySpeed {
  readonly name: string;
  /** Bytes of the journals. */
  readonly journalMb: number;
  readonly rawMbPerSecond: Spread;
  readonly replayMbPerSecond: Spread;
  readonly ratio: Spread;
  /** Peak of the process that replays, with the model that it rebuilds. */
  readonly peakMb: number;
  /** The share of the raw figure that a replay is to reach. */
  readonly target: number;
}

const TARGET = 0.8;
const JOB = "replayed";

/** Journals on four shards that no snapshot shortens. */
const HOST = { shards: 4, retainBytes: 1e12, snapshotBytes: 1e12, journalBytesMax: 2e9 };

/** How long a trainer pushes to fill the journals. */
const FILL_MS = 6_000;

const MODELS: readonly (readonly [name: string, model: Model])[] = [
  ["replay of 1 MiB records", { prefix: "mib", parameters: 16, shape: [262_144] }],
  ["replay of 4 KiB records", { prefix: "kib", parameters: 1, shape: [1_024] }],
];

/** Fills the journals of a job for each model, and measures their replay. */
export async function benchReplay(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<ReplaySpeed[]> {
  const speeds: ReplaySpeed[] = [];
  for (const [name, model] of MODELS) {
    if (!isWanted(options, name)) continue;
    options.log(name);
    speeds.push(await measure(name, model, options));
  }
  return speeds;
}

async function measure(name: string, model: Model, options: BenchOptions): Promise<ReplaySpeed> {
  const bed = await Bed.open(options.profileDirectory);
  try {
    const host = await bed.startHost(JOB, "file", HOST);
    const trainer = await bed.startTrainer(JOB, "trainer");
    await trainer.call("create", model);
    const durationMs = options.quick ? FILL_MS / 6 : FILL_MS;
    await trainer.call("run", { model, operation: "grad", durationMs });
    // It would work on its own leases and marks beside what is measured.
    await host.call("close", undefined);
    const replayer = bed.start<Replayer>("replayer");
    const place = { url: bed.broker.url, job: JOB };
    await replayer.call("replay", place);
    const [raws, replays, ratios]: [number[], number[], number[]] = [[], [], []];
    let journalMb = 0;
    let peakMb = 0;
    for (let round = 0; round < Math.max(3, options.rounds); round++) {
      const before = await replayer.call("raw", place);
      resetPeak(replayer.pid);
      const { elapsedMs } = await replayer.call("replay", place);
      peakMb = Math.max(peakMb, peakBytes(replayer.pid) / 1e6);
      const after = await replayer.call("raw", place);
      journalMb = before.bytes / 1e6;
      const raw = (2e3 * journalMb) / (before.elapsedMs + after.elapsedMs);
      const replay = (1e3 * journalMb) / elapsedMs;
      raws.push(raw);
      replays.push(replay);
      ratios.push(replay / raw);
    }
    const [rawMbPerSecond, replayMbPerSecond, ratio] = [
      spread(raws),
      spread(replays),
      spread(ratios),
    ];
    return { name, journalMb, rawMbPerSecond, replayMbPerSecond, ratio, peakMb, target: TARGET };
  } finally {
    await bed.close();
  }
}
