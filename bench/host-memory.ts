import { Bed } from "./bed.ts";
import { peakBytes } from "./process-usage.ts";
import type { Model } from "./programs/trainer.ts";

/** The peak memory of a host, and the bytes of its values. */
export interface HostMemory {
  readonly name: string;
  /** Bytes of all values. */
  readonly heldMb: number;
  /** Its peak before there was a model, when all values were initialized, and after the pushes. */
  readonly emptyMb: number;
  readonly initializedMb: number;
  readonly peakMb: number;
  /** 1.3 times the bytes held and 100 MB. */
  readonly targetMb: number;
}

const PARAMETER_BYTES = 4_000_000;
/** Enough for every shard to make snapshots. */
const PUSH_MS_PER_MB = 20;

/** Initializes a model of this size in a new host, updates all of it for a while, and reads it. */
export async function measureHostMemory(
  modelBytes: number,
  profileDirectory: string | undefined,
): Promise<HostMemory> {
  const bed = await Bed.open(profileDirectory);
  try {
    const host = await bed.startHost("bench", "file");
    const trainer = await bed.startTrainer("bench", "trainer");
    const emptyMb = peakBytes(host.pid) / 1e6;
    const parameters = Math.round(modelBytes / PARAMETER_BYTES);
    const model: Model = { prefix: "p", parameters, shape: [PARAMETER_BYTES / 4] };
    await trainer.call("create", model);
    const initializedMb = peakBytes(host.pid) / 1e6;
    const heldMb = (parameters * PARAMETER_BYTES) / 1e6;
    await trainer.call("run", { model, operation: "grad", durationMs: heldMb * PUSH_MS_PER_MB });
    await trainer.call("run", { model, operation: "pull", durationMs: 0 });
    return {
      name: `host memory, ${heldMb} MB held`,
      heldMb,
      emptyMb,
      initializedMb,
      peakMb: peakBytes(host.pid) / 1e6,
      targetMb: 1.3 * heldMb + 100,
    };
  } finally {
    await bed.close();
  }
}
