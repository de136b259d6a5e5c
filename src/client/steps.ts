import type { Synchronization } from "../protocol/config/index.ts";
import { ensureError, reactionTo, reactionToRejection } from "../protocol/errors.ts";
import { parseEnterReply } from "../protocol/lifecycle-messages.ts";
import { encodeClock } from "../protocol/records.ts";
import { allOrFirstError } from "./block-reader.ts";
import type { Deadline } from "./deadline.ts";
import type { Session } from "./session.ts";
import { askForStep, type StepRequestsOptions } from "./step-requests.ts";
import { Turns } from "./turns.ts";
import type { UpdateSender } from "./update-sender.ts";
import type { UpdateSource } from "./update-source.ts";

/** What the steps of a trainer belong to. */
export interface StepsOptions extends StepRequestsOptions {
  readonly session: Session;
  readonly sender: UpdateSender;
}

/** How the gradients of one call take part in the steps of the job. */
export interface StepPlace {
  /** The step they belong to; undefined unless the job is synchronous. */
  readonly step: number | undefined;
  /** Whether those that come after their step has closed are counted, not refused. */
  readonly countsLate: boolean;
}

/** What became of the gradients of one call. */
export interface GradResult {
  /**
   * Blocks whose step had closed before the gradient came, which was then left out: in a job with
   * backup trainers, or in the first step after this trainer has entered the job's steps.
   */
  readonly lateBlocks: number;
}

/**
 * A trainer's part in the steps of a `sync` or `ssp` job. It becomes a member at its first gradient,
 * from the largest step that is closed in any shard on. Steps are ended in the order of the calls.
 */
export class Steps {
  readonly #options: StepsOptions;
  readonly #turns = new Turns();
  /** Gradients of the open step that are on their way. */
  readonly #sending = new Set<Promise<unknown>>();
  /** The last step known to be closed, by shard. */
  readonly #closed = new Map<number, number>();
  /** Revision of the members that have this trainer, and the session that it is one in. */
  #member: { readonly revision: number; readonly session: number } | undefined;
  #ended = 0;
  /** Whether a gradient of the step after the last ended one has been sent. */
  #open = false;
  #enteredInStep = false;

  constructor(options: StepsOptions) {
    this.#options = options;
  }

  /** Steps this trainer has ended, those before it entered included. */
  get ended(): number {
    return this.#ended;
  }

  /** The step that must have closed before this trainer reads; undefined for none. */
  get readStep(): number | undefined {
    const { synchronization } = this.#options.session;
    if (synchronization.mode === "async" || !this.#isMember) return undefined;
    const staleness = synchronization.mode === "ssp" ? synchronization.staleness : 0;
    return this.#ended > staleness ? this.#ended - staleness : undefined;
  }

  /** A shard has answered a read that waited for a step. */
  noteClosed(shard: number, step: number): void {
    this.#closed.set(shard, Math.max(step, this.#closed.get(shard) ?? 0));
  }

  /**
   * A shard has fallen back: steps that had closed there may be open again, and close only when this
   * trainer tells it once more how far it is. So it enters anew at its next gradient, and until then its
   * reads wait for no step.
   */
  fellBack(shard: number): void {
    this.#closed.delete(shard);
    this.#member = undefined;
  }

  /**
   * Sends gradients to shards as part of the open step, and ends the step if `endStep`. After an
   * error the step is still open.
   * @throws what `send` throws; TIMEOUT naming members waited for; NOT_MEMBER if the trainer has lost
   * its place: the next gradient enters anew.
   */
  async gradients(
    call: { readonly shards: readonly number[]; readonly endStep: boolean },
    deadline: Deadline,
    send: (place: StepPlace) => Promise<{ late: number }>,
  ): Promise<GradResult> {
    const { synchronization } = this.#options.session;
    if (synchronization.mode === "async") {
      return toResult(await send({ step: undefined, countsLate: false }));
    }
    return this.#inTurn(deadline, async (release) => {
      await this.#enter(deadline);
      if (synchronization.mode === "sync") await this.#waitUntilOpen(call.shards, deadline);
      const sending = this.#send(synchronization, call.shards, deadline, send);
      this.#open = true;
      this.#sending.add(sending);
      const sent = (): boolean => this.#sending.delete(sending);
      sending.then(sent, sent);
      if (!call.endStep) release();
      const result = await sending;
      // Others are ahead: the next gradient looks for the step they are in.
      if (result.late > 0) this.#closed.clear();
      if (call.endStep) await this.#end(deadline);
      return toResult(result);
    });
  }

  /** Ends the open step, once its gradients are stored; see `Client.endStep`. */
  async endStep(deadline: Deadline): Promise<void> {
    if (this.#options.session.synchronization.mode === "async") return;
    await this.#inTurn(deadline, async () => {
      await this.#enter(deadline);
      await this.#end(deadline);
    });
  }

  /** Takes part in no later step; see `Client.exitSteps`. */
  async exit(deadline: Deadline): Promise<void> {
    if (this.#options.session.synchronization.mode === "async") return;
    await this.#inTurn(deadline, async () => {
      await deadline.race(Promise.allSettled(this.#sending));
      await this.#options.session.request("exit", {}, deadline);
      this.#member = undefined;
    });
  }

  get #isMember(): boolean {
    return this.#member?.session === this.#options.session.number;
  }

  /**
   * Sends, and once more if a shard finds the gradients too early: it has fallen back to an older step
   * without this trainer's knowledge. What other shards have taken already they count as late.
   */
  async #send(
    synchronization: Exclude<Synchronization, { mode: "async" }>,
    shards: readonly number[],
    deadline: Deadline,
    send: (place: StepPlace) => Promise<{ late: number }>,
  ): Promise<{ late: number }> {
    try {
      return await send(this.#place(synchronization));
    } catch (caught) {
      if (reactionToRejection(ensureError(caught).code) !== "resend-in-step") throw caught;
      this.#member = undefined;
      this.#closed.clear();
      await this.#waitUntilOpen(shards, deadline);
      return await send(this.#place(synchronization));
    }
  }

  #place({ mode, ...rest }: Exclude<Synchronization, { mode: "async" }>): StepPlace {
    const backups = "backups" in rest ? rest.backups : 0;
    return {
      step: mode === "sync" ? this.#ended + 1 : undefined,
      countsLate: backups > 0 || this.#enteredInStep,
    };
  }

  async #inTurn<T>(deadline: Deadline, work: (release: () => void) => Promise<T>): Promise<T> {
    const release = await this.#turns.take(deadline);
    try {
      return await work(release);
    } catch (caught) {
      if (reactionTo(ensureError(caught).code) === "enter-anew") this.#member = undefined;
      throw caught;
    } finally {
      release();
    }
  }

  /** Becomes a member, unless this session is one, and comes up to the largest closed step. */
  async #enter(deadline: Deadline): Promise<void> {
    if (this.#isMember) return;
    const { session } = this.#options;
    const { revision } = parseEnterReply(await session.request("enter", {}, deadline));
    const member = { revision, session: session.number };
    const shards = Array.from({ length: session.shards }, (_, shard) => shard);
    const closed = await this.#ask(shards, { revision, step: () => 0 }, deadline);
    // What it has ended in an earlier membership stays ended.
    this.#ended = Math.max(this.#ended, ...closed);
    if (closed.some((step) => step < this.#ended)) await this.#sendClocks(this.#ended, deadline);
    this.#member = member;
    this.#enteredInStep = true;
  }

  /** Waits until the step before the open one has closed where gradients are to go. */
  async #waitUntilOpen(shards: readonly number[], deadline: Deadline): Promise<void> {
    while (true) {
      await this.#enter(deadline);
      const step = this.#ended;
      const revision = this.#member?.revision ?? 0;
      const behind = [...new Set(shards)].filter((shard) => (this.#closed.get(shard) ?? 0) < step);
      if (behind.length === 0) return;
      // After a fallback nobody closes the step before this trainer has entered anew.
      const wanted = { revision, step: () => (this.#isMember ? step : 0) };
      const closed = await this.#ask(behind, wanted, deadline);
      if (!this.#isMember) continue;
      const most = Math.max(...closed);
      if (this.#open || most <= step) return;
      // With backups, steps close without this trainer: what it could send for them comes too late.
      await this.#sendClocks(most, deadline);
      this.#ended = most;
    }
  }

  async #ask(
    shards: readonly number[],
    wanted: { readonly revision: number; readonly step: () => number },
    deadline: Deadline,
  ): Promise<number[]> {
    return allOrFirstError(
      shards.map(async (shard) => {
        const { step } = await askForStep(this.#options, { shard, ...wanted }, deadline);
        this.noteClosed(shard, step);
        return step;
      }),
    );
  }

  async #end(deadline: Deadline): Promise<void> {
    // A shard must have the gradients of a step before it is told that no more will come.
    await deadline.race(Promise.allSettled(this.#sending));
    await this.#sendClocks(this.#ended + 1, deadline);
    this.#ended += 1;
    this.#open = false;
    this.#enteredInStep = false;
  }

  async #sendClocks(step: number, deadline: Deadline): Promise<void> {
    const { sender, session, subjects, trainer } = this.#options;
    const clocks = Array.from(
      { length: session.shards },
      (_, shard): UpdateSource => ({
        subject: subjects.clock(shard, trainer),
        shard,
        topic: { kind: "clock", step },
        dataBytes: 0,
        namesVersion: false,
        draft: (head) => encodeClock({ verb: "clock", ...head, step }),
      }),
    );
    await sender.send(clocks, { deadline });
  }
}

function toResult({ late }: { late: number }): GradResult {
  return { lateBlocks: late };
}
