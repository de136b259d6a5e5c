import { type Fields, parseTarget } from "../../protocol/index.ts";
import { abortParameter } from "./create.ts";
import { isForsaken, requireSelected } from "./holder.ts";
import { changeJob } from "./job-record.ts";
import { isSelected, type Lifecycle, step } from "./machine.ts";
import { beginReply } from "./replies.ts";
import { requireLiveSession, requireSession } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Selects this session to initialize the job, if nobody else does or has. A session that is
 * selected stays so however often it asks; a newer one of the same trainer, and anybody once the
 * selected one is gone, takes its place under the next epoch.
 */
export async function begin(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const session = await requireLiveSession(around, trainer, fields);
  const { result: job } = await changeJob(around, async (current) => {
    if (isSelected(current, session)) return current;
    const replace = await isForsaken(around, current);
    return step(current, { type: "BEGIN", trainer, session, replace });
  });
  return { ...beginReply(job, isSelected(job, session)) };
}

/** Gives up an initialization, of the job or of one parameter. What is ready stays ready. */
export async function abort(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const session = await requireSession(around, trainer, fields);
  const { epoch, parameter } = parseTarget(fields);
  const claimant = { trainer, session, epoch };
  const giveUp = (lifecycle: Lifecycle): Lifecycle => {
    const { state, context } = lifecycle;
    const isOver = state === "ready" || (state === "uninitialized" && context.epoch === epoch);
    if (isOver) return lifecycle;
    requireSelected(lifecycle, claimant, parameter);
    return step(lifecycle, { type: "ABORT", session, epoch, replace: false });
  };
  if (parameter !== undefined) {
    return { ...beginReply(await abortParameter(around, parameter, giveUp), false) };
  }
  return { ...beginReply((await changeJob(around, giveUp)).result, false) };
}
