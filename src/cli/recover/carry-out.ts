import { mapConcurrently } from "../../actors/concurrent.ts";
import type { AcceptedLoss } from "../../actors/recovery/accept-loss.ts";
import type { RecoveryChoice, ShardFindings } from "../../actors/recovery/findings.ts";
import type { Recovery } from "../../actors/recovery/recovery.ts";
import type { CliContext } from "../context.ts";
import { unlessAborted } from "../interrupts.ts";
import { nameShards } from "../output/amounts.ts";
import { describeLastFallback } from "../output/fallbacks.ts";
import type { Output } from "../output/output.ts";

/** A choice for a stopped shard. */
export interface Plan {
  readonly findings: ShardFindings;
  readonly choice: RecoveryChoice;
}

/** A shard that was recovered. */
export interface ServedLoss extends AcceptedLoss {
  /** Whether a host serves it by now. */
  readonly served: boolean;
}

/** Lets shards go on, one after the other, and tells what each has lost. */
export async function carryOut(
  { signal }: CliContext,
  output: Output,
  recovery: Recovery,
  plans: readonly Plan[],
): Promise<AcceptedLoss[]> {
  const recovered: AcceptedLoss[] = [];
  for (const { findings, choice } of plans) {
    const state = await unlessAborted(signal, recovery.recover(findings, choice));
    recovered.push(state);
    const { shard, generation, fallbacks } = state;
    const lost = describeLastFallback(fallbacks);
    output.message(
      `shard ${shard} goes on from record ${choice.seq} under generation ${generation}: ${lost}`,
    );
  }
  return recovered;
}

/** Waits until hosts serve the shards that were recovered, and tells which they do not serve. */
export async function awaitOwners(
  { signal }: CliContext,
  output: Output,
  recovery: Recovery,
  recovered: readonly AcceptedLoss[],
): Promise<ServedLoss[]> {
  const asked = mapConcurrently(recovered, (each) => recovery.awaitOwner(each, signal));
  const problems = await unlessAborted(signal, asked);
  const served = recovered.map((each, i) => ({ ...each, served: problems[i] === undefined }));
  const again = served.filter((each) => each.served).map(({ shard }) => shard);
  if (again.length > 0) output.message(`served again: ${nameShards(again)}`);
  for (const [i, problem] of problems.entries()) {
    if (problem === undefined) continue;
    output.warning(
      `not served yet: shard ${recovered[i]?.shard}: ${problem.code}: ${problem.message}`,
    );
  }
  return served;
}
