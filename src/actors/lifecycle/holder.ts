import { PserverError, quoteName } from "../../protocol/index.ts";
import { isSelected, type Lifecycle } from "./machine.ts";
import { isGone } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/** Who says that it initializes: as the subject and the request name it. */
export interface Claimant {
  readonly trainer: string;
  readonly session: number;
  readonly epoch: number;
}

/**
 * Passes if this session initializes what the lifecycle is of, under this epoch.
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
  if (state === "ready") {
    throw new PserverError(
      "ALREADY_INITIALIZED",
      `${what} was initialized by ${by}, in epoch ${context.epoch}`,
      details,
    );
  }
  if (epoch < context.epoch || (epoch === context.epoch && state === "uninitialized")) {
    throw new PserverError(
      "STALE_EPOCH",
      `${what}: the initialization of epoch ${epoch} has ended without a finish; ` +
        `the epoch is ${context.epoch}, ${state}`,
      details,
    );
  }
  throw new PserverError(
    "NOT_SELECTED",
    `${what}: expected ${state === "initializing" ? by : "nobody"} in epoch ${context.epoch}; ` +
      `received trainer ${quoteName(trainer)}, session ${session}, epoch ${epoch}`,
    details,
  );
}

/** Whether this session has finished the lifecycle: a repeat of its finish then succeeds. */
export function hasFinished(lifecycle: Lifecycle, claimant: Claimant): boolean {
  const { state, context } = lifecycle;
  return (
    state === "ready" && context.session === claimant.session && context.epoch === claimant.epoch
  );
}

/** Whether something is being initialized by a session that can be taken to be dead. */
export async function isForsaken(around: Surroundings, lifecycle: Lifecycle): Promise<boolean> {
  return lifecycle.state === "initializing" && (await isGone(around, lifecycle.context));
}
