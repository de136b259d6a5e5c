import { type ErrorCode, PserverError, quoteName } from "../../protocol/index.ts";
import type { LifecycleDeps } from "./deps.ts";
import { jobRecord } from "./lifecycle-record.ts";
import { advance, isSelected, type Lifecycle } from "./machine.ts";
import { isGone } from "./sessions.ts";

/** The sender of a request that claims to initialize, as subject and request name it. */
export interface Claimant {
  readonly trainer: string;
  readonly session: number;
  readonly epoch: number;
}

/**
 * Checks that this session is the one that initializes the job, or `parameter`, under this epoch.
 * @throws ALREADY_INITIALIZED if it is ready, STALE_EPOCH if another initialization has replaced
 * the claimant's or it was aborted, NOT_SELECTED otherwise.
 */
export function requireSelected(
  lifecycle: Lifecycle,
  claimant: Claimant,
  parameter?: string,
): void {
  const { state, context } = lifecycle;
  const { trainer, session, epoch } = claimant;
  if (isSelected(lifecycle, session) && epoch === context.epoch) return;
  const what = parameter === undefined ? "the job" : quoteName(parameter);
  const by = `trainer ${quoteName(context.trainer)}, session ${context.session}`;
  const details = {
    ...(parameter === undefined ? {} : { parameter }),
    trainer,
    expected: { trainer: context.trainer, session: context.session, epoch: context.epoch },
    received: { trainer, session, epoch },
  };
  const refusal = (code: ErrorCode, text: string): PserverError =>
    new PserverError(code, `${what}${text}`, details);
  if (state === "ready") {
    const text = ` was initialized by ${by}, in epoch ${context.epoch}`;
    throw refusal("ALREADY_INITIALIZED", text);
  }
  if (epoch < context.epoch || (epoch === context.epoch && state === "uninitialized")) {
    const ended = `: the initialization of epoch ${epoch} has ended without a finish`;
    throw refusal("STALE_EPOCH", `${ended}; the epoch is ${context.epoch}, ${state}`);
  }
  const expected = `${state === "initializing" ? by : "nobody"} in epoch ${context.epoch}`;
  const received = `trainer ${quoteName(trainer)}, session ${session}, epoch ${epoch}`;
  throw refusal("NOT_SELECTED", `: expected ${expected}; received ${received}`);
}

/** Whether this session has finished the initialization: a repeat of its finish then succeeds. */
export function hasFinished(lifecycle: Lifecycle, claimant: Claimant): boolean {
  const { state, context } = lifecycle;
  return (
    state === "ready" && context.session === claimant.session && context.epoch === claimant.epoch
  );
}

/** Whether the session that initializes counts as dead. */
export async function isAbandoned(deps: LifecycleDeps, lifecycle: Lifecycle): Promise<boolean> {
  return lifecycle.state === "initializing" && (await isGone(deps, lifecycle.context));
}

/** Ends the job's initialization if the selected session counts as dead; returns the job as it is then. */
export async function abortAbandonedJob(deps: LifecycleDeps): Promise<Lifecycle> {
  const { result } = await jobRecord.change(deps, async (job) => {
    const { session, epoch } = job.context;
    const replace = await isAbandoned(deps, job);
    return replace ? advance(job, { type: "ABORT", session, epoch, replace }) : job;
  });
  return result;
}
