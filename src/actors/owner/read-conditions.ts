import type { Position, PserverError } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { PositionQueue } from "./position-queue.ts";
import type { Asker } from "./responder.ts";
import type { StepQueue, WantedStep } from "./step-queue.ts";

/** Dependencies of ReadConditions. */
export interface ReadConditionsDeps {
  readonly shard: Pick<Shard, "steps">;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  /** Position of the fold. */
  readonly position: () => Position;
}

/** A position that a request needs, and how long it may wait for that. */
export type Waiting = Position & { readonly waitMs: number };

/** Lets requests wait until the fold of a shard has reached what they need. */
export class ReadConditions {
  readonly #deps: ReadConditionsDeps;

  constructor(deps: ReadConditionsDeps) {
    this.#deps = deps;
  }

  /** Calls `run` once the fold has reached a position, or else `refuse`. */
  afterPosition(
    { from }: Asker,
    { generation, seq, waitMs }: Waiting,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const read = { from, wanted: { generation, seq, asker: from }, waitMs, run, refuse };
    this.#deps.positions.at(this.#deps.position(), read);
  }

  /** Calls `run` once the fold has reached a position and then a step, both within `waitMs`. */
  afterStep(
    asker: Asker,
    request: Waiting,
    wanted: WantedStep,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { shard, steps } = this.#deps;
    const deadline = performance.now() + request.waitMs;
    const arrived = (): void => {
      const waitMs = Math.max(0, Math.ceil(deadline - performance.now()));
      steps.at(shard.steps, { from: asker.from, wanted, waitMs, run, refuse });
    };
    this.afterPosition(asker, request, arrived, refuse);
  }

  /** Calls `run` once the fold has reached the position and the step that a read of values names. */
  afterBoth(
    asker: Asker,
    request: Waiting & { readonly step?: number },
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { step } = request;
    // Step 0 counts as closed, also in a job without steps.
    if (step === undefined || step === 0) this.afterPosition(asker, request, run, refuse);
    else {
      const wanted = { revision: 0, step, trainer: asker.from, isRead: true };
      this.afterStep(asker, request, wanted, run, refuse);
    }
  }
}
