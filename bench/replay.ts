import { Bed } from "./bed.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { peakBytes, resetPeak } from "./process-usage.ts";
import type { JournalFiller } from "./programs/journal-filler.ts";
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

/** Bytes and number of the records that the journals are filled with, at most. */
const FILL_BYTES = 1e9;
const FILL_RECORDS = 200_000;

/** Parameters enough for each shard to have some. */
const PARAMETERS = 16;

const RECORD_BYTES = [
  ["1 MiB", 1024 ** 2],
  ["256 KiB", 256 * 1024],
  ["64 KiB", 64 * 1024],
  ["16 KiB", 16 * 1024],
  ["4 KiB", 4 * 1024],
  ["1 KiB", 1024],
] as const;

/** Fills the journals of a job for each model, and measures their replay. */
export async function benchReplay(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<ReplaySpeed[]> {
  const speeds: ReplaySpeed[] = [];
  for (const [size, bytes] of RECORD_BYTES) {
    const name = `replay of ${size} records`;
    if (!isWanted(options, name)) continue;
    options.log(name);
    speeds.push(await measure(name, bytes, options));
  }
  return speeds;
}

async function measure(
  name: string,
  recordBytes: number,
  options: BenchOptions,
): Promise<ReplaySpeed> {
  const bed = await Bed.open(options.profileDirectory);
  try {
    const host = await bed.startHost(JOB, "file", HOST);
    const trainer = await bed.startTrainer(JOB, "trainer");
    const model: Model = { prefix: "p", parameters: PARAMETERS, shape: [recordBytes / 4] };
    await trainer.call("create", model);
    await trainer.call("run", { model, operation: "mix", durationMs: 0 });
    const records = Math.min(FILL_BYTES / recordBytes, FILL_RECORDS) / (options.quick ? 10 : 1);
    const filler = bed.start<JournalFiller>("journal-filler");
    const { shards } = HOST;
    const filling = { url: bed.broker.url, job: JOB, shards, records: Math.ceil(records / shards) };
    await filler.call("fill", filling);
    // It would work on its own leases and marks beside what is measured.
    await host.call("close", undefined);
    const replayer = bed.start<Replayer>("replayer");
    const place = { url: bed.broker.url, job: JOB };
    // The threads start, and compile what they run.
    for (let i = 0; i < 3; i++) await replayer.call("replay", place);
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
