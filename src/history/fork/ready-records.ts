import { setTimeout as delay } from "node:timers/promises";
import { mapConcurrently } from "../../actors/concurrent.ts";
import type { KvBucket } from "../../actors/jetstream/kv-bucket.ts";
import { jobRecord } from "../../actors/lifecycle/lifecycle-record.ts";
import type { Lifecycle } from "../../actors/lifecycle/machine.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import { changeParameter } from "../../actors/lifecycle/parameter-record.ts";
import { PARAMETER_KEYS, parameterKey } from "../../actors/lifecycle/record-format.ts";

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
  const deps = { bucket, pause: delay };
  // An interrupted run may have left a record: what is not known to be there is created first.
  await mapConcurrently(parameters, (parameter) =>
    changeParameter(deps, parameter.declaration.name, () => parameter, { known: undefined }),
  );
  await jobRecord.change(deps, () => INITIALIZED);
}

/** The job is initialized: nobody is selected to do that again. */
const INITIALIZED: Lifecycle = {
  state: "ready",
  context: { epoch: 1, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};
