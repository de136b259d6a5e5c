import { type Fields, parseTarget } from "../../protocol/index.ts";
import { isAbandoned, requireSelected } from "./claimant.ts";
import type { LifecycleDeps } from "./deps.ts";
import { beginReply, jobRecord } from "./lifecycle-record.ts";
import { advance, isSelected, type Lifecycle } from "./machine.ts";
import { requireOwn } from "./parameter.ts";
import { changeParameter, requireKnown } from "./parameter-record.ts";
import { requireLiveSession, requireSession } from "./sessions.ts";

/**
 * Selects this session to initialize the job, if nobody else does or has. The selected session stays
 * selected however often it asks. A newer session of the same trainer takes its place under the next
 * epoch, and so does any session once the selected one is gone.
 */
export async function begin(deps: LifecycleDeps, trainer: string, fields: Fields): Promise<Fields> {
  const session = await requireLiveSession(deps, trainer, fields);
  const { result: job } = await jobRecord.change(deps, async (current) => {
    if (isSelected(current, session)) return current;
    const replace = await isAbandoned(deps, current);
    return advance(current, { type: "BEGIN", trainer, session, replace });
  });
  return { ...beginReply(job, isSelected(job, session)) };
}

/** Aborts an initialization, of the job or of one parameter. What is ready stays ready. */
export async function abort(deps: LifecycleDeps, trainer: string, fields: Fields): Promise<Fields> {
  const session = await requireSession(deps, trainer, fields);
  const { epoch, parameter } = parseTarget(fields);
  const claimant = { trainer, session, epoch };
  const end = (lifecycle: Lifecycle): Lifecycle => {
    const { state, context } = lifecycle;
    const isOver = state === "ready" || (state === "uninitialized" && context.epoch === epoch);
    if (isOver) return lifecycle;
    requireSelected(lifecycle, claimant, parameter);
    return advance(lifecycle, { type: "ABORT", session, epoch, replace: false });
  };
  const aborted =
    parameter === undefined
      ? (await jobRecord.change(deps, end)).result
      : await abortParameter(deps, parameter, end);
  return { ...beginReply(aborted, false) };
}

async function abortParameter(
  deps: LifecycleDeps,
  name: string,
  end: (lifecycle: Lifecycle) => Lifecycle,
): Promise<Lifecycle> {
  const parameter = await changeParameter(deps, name, (found) => {
    const known = requireOwn(requireKnown(found, name));
    const lifecycle = end(known.lifecycle);
    return lifecycle === known.lifecycle ? known : { ...known, lifecycle };
  });
  return parameter.lifecycle;
}
