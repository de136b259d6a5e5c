import { mapConcurrently } from "../../actors/concurrent.ts";
import type { KvBucket } from "../../actors/jetstream/kv-bucket.ts";
import { toLifecycleRecord } from "../../actors/lifecycle/lifecycle-record.ts";
import type { Lifecycle } from "../../actors/lifecycle/machine.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import { toParameterRecord } from "../../actors/lifecycle/parameter-record.ts";
import { JOB_KEY, PARAMETER_KEYS, parameterKey } from "../../actors/lifecycle/record-format.ts";

/** Writes the records of the parameters and of a job that is initialized, in place of any there are. */
export async function writeRecords(
  bucket: KvBucket,
  parameters: readonly Parameter[],
): Promise<void> {
  const names = parameters.map(({ declaration }) => parameterKey(declaration.name));
  const wanted = new Set(names);
  const stale = (await bucket.keys(PARAMETER_KEYS)).filter((key) => !wanted.has(key));
  await mapConcurrently(stale, async (key) => {
    const stored = await bucket.read(key);
    if (stored !== undefined) await bucket.remove(key, stored.revision);
  });
  await mapConcurrently(parameters, (parameter) =>
    write(bucket, parameterKey(parameter.declaration.name), toParameterRecord(parameter)),
  );
  await write(bucket, JOB_KEY, toLifecycleRecord(INITIALIZED));
}

/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED: Lifecycle = {
  state: "ready",
  context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0 },
};

async function write(bucket: KvBucket, key: string, value: unknown): Promise<void> {
  if ((await bucket.create(key, value)) !== undefined) return;
  const stored = await bucket.read(key);
  if (stored !== undefined) await bucket.update(key, value, stored.revision);
}
