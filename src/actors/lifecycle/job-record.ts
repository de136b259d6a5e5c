import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { type Changed, change } from "./compare-and-swap.ts";
import { isForsaken } from "./holder.ts";
import { JOB_KEY } from "./keys.ts";
import { parseLifecycleRecord, toLifecycleRecord } from "./lifecycle-record.ts";
import { type Lifecycle, step } from "./machine.ts";
import type { Surroundings } from "./settings.ts";

/** The job's lifecycle as it stands. */
export async function readJob(around: Surroundings): Promise<Lifecycle> {
  return parseJob(await around.records.read(JOB_KEY));
}

/**
 * Changes the job's lifecycle by compare-and-swap. `decide` may be called several times; it
 * leaves the record alone by giving back what it was given, unless `touch` asks for a new
 * revision all the same.
 */
export async function changeJob(
  around: Surroundings,
  decide: (job: Lifecycle) => Lifecycle | Promise<Lifecycle>,
  options: { readonly touch?: (job: Lifecycle) => boolean } = {},
): Promise<Changed<Lifecycle>> {
  return await change({
    records: around.records,
    key: JOB_KEY,
    pause: around.pause,
    decide: async (current) => {
      const before = parseJob(current);
      const after = await decide(before);
      if (after === before && options.touch?.(before) !== true) return { result: before };
      return { write: toLifecycleRecord(after), result: after };
    },
  });
}

/** Ends the job's initialization if whoever was selected is gone; the job as it then stands. */
export async function abortForsakenJob(around: Surroundings): Promise<Lifecycle> {
  const { result } = await changeJob(around, async (job) => {
    const { session, epoch } = job.context;
    const replace = await isForsaken(around, job);
    return replace ? step(job, { type: "ABORT", session, epoch, replace }) : job;
  });
  return result;
}

function parseJob(stored: StoredRecord | undefined): Lifecycle {
  return parseLifecycleRecord(stored?.value, JOB_KEY);
}
