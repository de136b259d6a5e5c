import { PserverError } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { TRAINER_KEYS } from "./keys.ts";
import type { Surroundings } from "./settings.ts";
import { sweptUpTo } from "./swept.ts";
import { parseTrainer } from "./trainer-record.ts";

/**
 * Passes if the job's counter has given this number of a session, of which something else bears witness: it
 * was read before the counter is.
 * @throws JOB_DAMAGED if it has not: the counter has fallen back, and would give numbers a second time.
 */
export async function requireCounted(
  { counter, job }: Pick<Surroundings, "counter" | "job">,
  session: number,
  witness: string,
): Promise<void> {
  const given = await counter.last();
  if (given >= session) return;
  throw new PserverError(
    "JOB_DAMAGED",
    `job ${job.job}: the counter of sessions stands at ${given}, but ${witness} has session ${session}: ` +
      "the job's bucket has lost records, or is an older copy",
    { job: job.job, expected: session, received: given },
  );
}

/** Compares the counter with every other record of the job that names a session; @throws JOB_DAMAGED. */
export async function checkCounter(around: Surroundings): Promise<void> {
  await requireCounted(around, await sweptUpTo(around), "the last sweep");
  let latest = { key: "", session: 0 };
  await mapConcurrently(await around.records.keys(TRAINER_KEYS), async (key) => {
    const session = parseTrainer(await around.records.read(key), key)?.session ?? 0;
    if (session > latest.session) latest = { key, session };
  });
  await requireCounted(around, latest.session, `the record ${latest.key}`);
}
