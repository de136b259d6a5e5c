import type { Synchronization } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { parseEnterReply } from "../../protocol/messages/lifecycle-messages.ts";
import {
  encodeStepRequest,
  parseStepReply,
  type StepReply,
} from "../../protocol/messages/reads.ts";
import { encodeClock } from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import type { Positions } from "../core/shard-window.ts";
import {
  newStepCall,
  type StepCall,
  type StepCallKind,
  type StepsCommands,
  StepsCore,
} from "../core/steps-core.ts";
import type { Failure } from "../core/update-call.ts";
import type { Requests } from "../wire/wire.ts";
import { askOwner, type OwnerQuestion } from "./owner-questions.ts";
import type { Session } from "./session.ts";
import { toError, type UpdateSender, type UpdateSource } from "./update-sender.ts";

/** Dependencies of step requests. */
interface StepRequestDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
}

/**
 * Waits until a shard knows the members of a revision and has closed a step; returns how far it is.
 * @throws TIMEOUT at the deadline, naming the members that are waited for.
 */
async function askForStep(
  { subjects, trainer, ...deps }: StepRequestDeps,
  wanted: {
    readonly shard: number;
    readonly revision: number;
    /** The step to wait for; called before each request, because by then it may be another step, or none. */
    readonly step: () => number;
  },
  deadline: Deadline,
): Promise<StepReply> {
  const { shard, revision, step } = wanted;
  const subject = subjects.step(shard, trainer);
  const body: OwnerQuestion<StepReply>["body"] = (at) =>
    encodeStepRequest({ ...at, revision, step: step() });
  return await askOwner(deps, { shard, subject, body, read: parseStepReply }, deadline);
}

/** Dependencies of Steps. */
interface StepsDeps extends StepRequestDeps {
  readonly session: Session;
  readonly sender: UpdateSender;
}

/** How the gradients of one call take part in the steps of the job. */
export interface StepPlace {
  /** The step they belong to; undefined unless the job is synchronous. */
  readonly step: number | undefined;
  /** Whether gradients that come after their step has closed are counted instead of failing the call. */
  readonly countsLate: boolean;
}

/** What became of the gradients of one call. */
export interface GradResult {
  /**
   * Blocks whose gradient was left out, because their step had closed before it came. This happens in a job
   * with backup trainers, or in the first step after this trainer has entered the job's steps.
   */
  readonly lateBlocks: number;
}

/** Sends the gradients of a call as `place` says. */
type SendGradients = (place: StepPlace) => Promise<{ late: number }>;

/** A call under way. */
interface PendingStepCall {
  readonly deadline: Deadline;
  readonly send: SendGradients;
  readonly stopListening: () => void;
  readonly resolve: (result: GradResult) => void;
  readonly reject: (error: PserverError) => void;
}

/** Does the I/O of the step machine, for calls with deadlines. */
export class Steps implements StepsCommands {
  readonly #options: StepsDeps;
  readonly #core: StepsCore;
  readonly #pending = new Map<number, PendingStepCall>();
  #calls = 0;
  /** Exits that it has asked hosts for. */
  #exits = 0;

  constructor(options: StepsDeps) {
    this.#options = options;
    this.#core = new StepsCore(this);
  }

  /** Steps this trainer has ended, those before it entered included. */
  get ended(): number {
    return this.#core.ended;
  }

  /** The step that must have closed before this trainer reads; undefined for none. */
  get readStep(): number | undefined {
    return this.#core.readStep;
  }

  /** Tells the step machine that a session has begun. */
  sessionBegan(session: number, shards: number, synchronization: Synchronization): void {
    // Trainers that contribute to fragments keep no step: gradients of other parameters are applied as they come.
    const isDiloco = synchronization.mode === "diloco";
    this.#core.sessionBegan(session, shards, isDiloco ? { mode: "async" } : synchronization);
  }

  /** Tells the step machine that a shard has answered a read that waited for a step. */
  noteClosed(shard: number, step: number): void {
    this.#core.noteClosed(shard, step);
  }

  /** Tells the step machine that a read was refused because the trainer is no longer a member. */
  lostPlace(): void {
    this.#core.lostPlace();
  }

  /** Tells the step machine that a shard has fallen back. */
  fellBack(shard: number): void {
    this.#core.fellBack(shard);
  }

  /**
   * Sends gradients to shards as part of the open step, and ends the step if `endStep` is true. After an
   * error the step is still open.
   * A trainer that has lost its place in the steps enters again, once in a call.
   * @throws what `send` throws; TIMEOUT naming members waited for; NOT_MEMBER or LATE if the step had taken a part of
   * the gradients when it closed without the trainer.
   */
  gradients(
    call: { readonly shards: readonly number[]; readonly endStep: boolean },
    deadline: Deadline,
    send: SendGradients,
  ): Promise<GradResult> {
    return this.#run("gradients", deadline, { ...call, send });
  }

  /** Ends the open step, once its gradients are stored; see `Client.endStep`. */
  async endStep(deadline: Deadline): Promise<void> {
    await this.#run("end", deadline);
  }

  /** Takes part in no later step; see `Client.exitSteps`. */
  async exit(deadline: Deadline): Promise<void> {
    await this.#run("exit", deadline);
  }

  enter(call: StepCall): void {
    const { session } = this.#options;
    this.#relay(
      call,
      session.request("enter", { exits: this.#exits }, this.#deadline(call)),
      (fields) => this.#core.entered(call, parseEnterReply(fields).revision),
    );
  }

  exitMembers(call: StepCall): void {
    const { session } = this.#options;
    this.#exits += 1;
    const exits = this.#exits;
    this.#relay(call, session.request("exit", { exits }, this.#deadline(call)), () =>
      this.#core.exited(call),
    );
  }

  askStep(call: StepCall, shard: number, revision: number): void {
    const wanted = { shard, revision, step: () => this.#core.wantedStep(call) };
    askForStep(this.#options, wanted, this.#deadline(call)).then(
      ({ step }) => this.#core.stepAnswered(call, shard, step),
      (error: unknown) => this.#core.askFailed(call, ensureError(error)),
    );
  }

  sendGradients(call: StepCall, step: number, countsLate: boolean): void {
    const place = { step: step === 0 ? undefined : step, countsLate };
    // Decided before anything of the step is sent: shards that have dropped the trainer would refuse a part of it.
    const isOut = step > 0 && this.#options.session.mayBeOut;
    const sending = isOut ? Promise.reject(this.#mayBeOut()) : this.#call(call).send(place);
    sending
      .then(
        ({ late }) => this.#core.gradientsSent(call, late),
        (thrown: unknown) => {
          const error = ensureError(thrown);
          this.#core.gradientsFailed(call, error, takenBlocks(error));
        },
      )
      .catch((error: unknown) => this.#core.failed(call, ensureError(error)));
  }

  sendClocks(call: StepCall, step: number): void {
    const { sender, session, subjects, trainer } = this.#options;
    const clocks = Array.from(
      { length: session.shards },
      (_, shard): UpdateSource => ({
        subject: subjects.clock(shard, trainer),
        shard,
        topic: { kind: "clock", step },
        blocks: 1,
        dataBytes: 0,
        namesVersion: false,
        draft: (header) => encodeClock({ verb: "clock", ...header, step }),
      }),
    );
    const sending = sender.send(clocks, { deadline: this.#deadline(call) });
    this.#relay(call, sending, () => this.#core.clocksSent(call));
  }

  stepCallDone(call: StepCall): void {
    this.#take(call).resolve({ lateBlocks: call.late });
  }

  stepCallFailed(call: StepCall, failure: Failure): void {
    this.#take(call).reject(toError(failure));
  }

  #run(
    kind: StepCallKind,
    deadline: Deadline,
    gradients?: { shards: readonly number[]; endStep: boolean; send: SendGradients },
  ): Promise<GradResult> {
    const { shards = [], endStep = true, send = nothingToSend } = gradients ?? {};
    const call = newStepCall(++this.#calls, kind, shards, endStep);
    return new Promise((resolve, reject) => {
      if (deadline.ended !== undefined) throw deadline.ended;
      if (this.#options.session.mayBeOut) this.#core.lostPlace();
      const stopListening = deadline.onEnd((error) => this.#core.endCall(call, error));
      this.#pending.set(call.id, { deadline, send, stopListening, resolve, reject });
      this.#core.begin(call);
    });
  }

  #mayBeOut(): PserverError {
    const { trainer } = this.#options;
    return new PserverError(
      "NOT_MEMBER",
      `trainer ${quoteName(trainer)}: no host has confirmed the lease for its whole time, so the trainer may be out of the steps`,
      { trainer },
    );
  }

  /** Passes the result of a call's request on to the core. */
  #relay<T>(call: StepCall, work: Promise<T>, take: (result: T) => void): void {
    work.then(take).catch((error: unknown) => this.#core.failed(call, ensureError(error)));
  }

  #deadline(call: StepCall): Deadline {
    return this.#call(call).deadline;
  }

  #call(call: StepCall): PendingStepCall {
    const pending = this.#pending.get(call.id);
    if (pending === undefined) throw new PserverError("INTERNAL", "a step call is not under way");
    return pending;
  }

  /** Removes a call that is over, and returns it. */
  #take(call: StepCall): PendingStepCall {
    const pending = this.#call(call);
    this.#pending.delete(call.id);
    pending.stopListening();
    return pending;
  }
}

/** Counts the updates that are applied, or may be, by the error of a call that sent them. */
function takenBlocks({ details }: PserverError): number {
  return [details["applied"], details["unknown"]].filter(Array.isArray).flat().length;
}

function nothingToSend(): Promise<{ late: number }> {
  return Promise.resolve({ late: 0 });
}
