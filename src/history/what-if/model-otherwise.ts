import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Cut } from "../points/point.ts";
import { ProgressSum } from "../replay/progress-sum.ts";
import { ReplayedModel } from "../replay/replayed-model.ts";
import type { Replayer } from "../replay/replayer.ts";
import type { ChangeCounts, FoldChanges } from "./fold-changes.ts";

/** Which part of a history is folded otherwise. */
export interface OtherwiseSpan {
  /** Records after it are changed; by default all that lead to the end. */
  readonly from: Cut | undefined;
  readonly to: Cut;
}

/**
 * Rebuilds the model as it would have been at the end of a span if its records had been others.
 * @throws as `foldOtherwise`.
 */
export async function modelOtherwise(
  replayer: Replayer,
  { from, to }: OtherwiseSpan,
  changes: FoldChanges,
  onProgress: (doneRecords: number, totalRecords: number) => void = () => undefined,
): Promise<{ model: ReplayedModel; counts: ChangeCounts }> {
  const sum = new ProgressSum(onProgress);
  const folded = await mapConcurrently(
    [...to.entries()],
    ([shard, position]) =>
      replayer.foldOtherwise(shard, position, { changes, from: from?.[shard] }, sum.note),
    replayer.threads,
  );
  let [leftOut, changed] = [0, 0];
  for (const { counts } of folded) {
    leftOut += counts.leftOut;
    changed += counts.changed;
  }
  const model = new ReplayedModel(folded.map(({ replayed }) => replayed));
  return { model, counts: { leftOut, changed } };
}
