import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { encodeMessage, type Fields } from "../protocol/codec.ts";
import type { ParameterConfigInput, Synchronization } from "../protocol/config/index.ts";
import type { TensorData } from "../protocol/dtypes.ts";
import { PserverError } from "../protocol/errors.ts";
import { asMap, integerField, textField } from "../protocol/fields.ts";
import { IN_FLIGHT_BYTES_MAX } from "../protocol/limits.ts";
import {
  type JoinReply,
  type ParameterInfo,
  readStatusPages,
  type StatusReply,
  type StatusRequest,
} from "../protocol/messages/lifecycle-messages.ts";
import type { NoteEntries } from "../protocol/messages/records.ts";
import { quoteName } from "../protocol/names.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import type { Tensor, TensorLike } from "../protocol/tensor.ts";
import {
  type BeginOptions,
  type CallOptions,
  type Calls,
  Deadline,
  type GradOptions,
  type NamedTensor,
  type PullOptions,
  type PushOptions,
  type ReadOptions,
  type UpdateOptions,
} from "./calls/calls.ts";
import { Lifecycle } from "./calls/lifecycle.ts";
import { Parameters, SeenVersions } from "./calls/parameters.ts";
import type { ClientStats } from "./client-stats.ts";
import { LinkWindow } from "./core/link-window.ts";
import { Positions } from "./core/shard-window.ts";
import { Fallbacks, type ShardFallback } from "./io/fallbacks.ts";
import { Session } from "./io/session.ts";
import { type GradResult, Steps } from "./io/steps.ts";
import { UpdateSender } from "./io/update-sender.ts";
import type { IndexList } from "./part-plan.ts";
import { BlockReader } from "./pull/block-reader.ts";
import { Puller, type PullMode } from "./pull/puller.ts";
import type { GradientRecord, TensorRecord } from "./push/block-updates.ts";
import {
  type ContributionResult,
  type ContributionWork,
  type FragmentMode,
  Fragments,
  type FragmentVersions,
  type PulledFragment,
  type Sampling,
} from "./push/fragments.ts";
import type { OptimizerState } from "./push/optimizer-state.ts";
import { RoundingErrors } from "./push/rounding-errors.ts";
import { Updates } from "./push/updates.ts";
import { MORE, type NatsWire, Requests, type Wire } from "./wire/wire.ts";

/** A model file that a host has written. */
export interface SavedModel {
  /** Absolute path of the file on the machine of the host that wrote it. */
  readonly file: string;
  readonly bytes: number;
  readonly format: string;
  /** Id of that host. */
  readonly host: string;
}

/** Options of `Client.initParams`. */
export interface InitOptions extends CallOptions {
  /** Returns what the optimizer of a parameter has kept of its values elsewhere; undefined if it begins anew. */
  readonly optimizerState?: (name: string) => OptimizerState | undefined;
}

/** Options of `Client.saveModel`. If the call ends early, the host stops writing. */
export interface SaveOptions extends CallOptions {
  /** Called about twice a second with the bytes of values written and in total. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

/** Has a host write the model to a file; see `Client.saveModel`. */
async function saveModel(
  {
    requests,
    subjects,
    trainer,
  }: { readonly requests: Requests; readonly subjects: JobSubjects; readonly trainer: string },
  path: string,
  deadline: Deadline,
  onProgress: SaveOptions["onProgress"],
): Promise<SavedModel> {
  const token = randomUUID();
  const stop = (): void =>
    requests.tell(subjects.control(trainer, "stop"), encodeMessage({ token }));
  const stopListening = deadline.onEnd(stop);
  try {
    return await requests.ask({
      subject: subjects.control(trainer, "save"),
      // Where accounts are joined, the broker gives the host another reply subject, for one reply.
      body: (reply) => encodeMessage({ path, token, progress: reply }),
      read: ({ fields }) => {
        if (fields["progress"] === undefined) return parseSavedModel(fields);
        const progress = asMap(fields["progress"], "progress");
        onProgress?.(integerField(progress, "doneBytes"), integerField(progress, "totalBytes"));
        return MORE;
      },
      deadline,
      nobody: () => new PserverError("NO_HOST", `no host of job ${subjects.job} can save`),
      // Saving may take minutes, and a repeated request would begin it again.
      repeat: false,
    });
  } finally {
    stopListening();
  }
}

function parseSavedModel(fields: Fields): SavedModel {
  return {
    file: textField(fields, "file", 4096),
    bytes: integerField(fields, "bytes"),
    format: textField(fields, "format"),
    host: textField(fields, "host"),
  };
}

/** What the parts of a client are made from. */
export interface ClientPartsOptions {
  /** Carries records, and requests for values, with their answers. */
  readonly wire: Wire;
  /** Carries what must not wait behind them: the lease, and all other requests. Its inbox is another one. */
  readonly control: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** Called when the client cannot go on. */
  readonly fail: (error: PserverError) => void;
  readonly onFallback?: ((fallback: ShardFallback) => void) | undefined;
}

/**
 * The parts of a client. Each is made after the parts that it needs; this class passes on what one part must
 * tell others.
 */
export class ClientParts {
  readonly requests: Requests;
  readonly sender: UpdateSender;
  readonly session: Session;
  readonly parameters: Parameters;
  readonly steps: Steps;
  readonly fallbacks: Fallbacks;
  readonly lifecycle: Lifecycle;
  readonly updates: Updates;
  readonly puller: Puller;
  readonly fragments: Fragments;
  /** Requests for values. */
  readonly reads: Requests;
  readonly #seen: SeenVersions = new SeenVersions();
  readonly #errors: RoundingErrors = new RoundingErrors();
  /**
   * Whether the connection for records is back, but no host has said since that the broker holds the same job: a record
   * must not get into another one.
   */
  #awaitsHost = false;

  constructor({ wire, control, subjects, trainer, fail, onFallback }: ClientPartsOptions) {
    const payloadBytesMax = (): number => wire.payloadBytesMax;
    const positions = new Positions({
      journalReplaced: (shard, seen) => this.fallbacks.replaced(shard, seen),
    });
    this.requests = Requests.open(control, false);
    this.sender = UpdateSender.open({
      ...{ wire, subjects, trainer, positions },
      onSessionEnd: (error) => this.session.ended(error),
      // What rounding has left out of an update that was not applied as it was must not be made good.
      onGuarded: () => this.#errors.clear(),
    });
    this.session = new Session({
      ...{ requests: this.requests, subjects, trainer },
      onEnded: () => this.sender.pause(),
      onJoined: (reply) => this.#joined(reply),
      onHeld: () => this.#held(),
      onLost: fail,
    });
    wire.listen({
      disconnected: () => {
        this.#awaitsHost = false;
      },
      reconnected: () => {
        this.#awaitsHost = true;
        this.session.confirm();
      },
    });
    this.parameters = new Parameters(this.session, positions, payloadBytesMax);
    const { requests, sender, session, parameters } = this;
    const shared = {
      ...{ requests, sender, session, parameters, positions, subjects, trainer },
      ...{ seen: this.#seen, errors: this.#errors, payloadBytesMax },
    };
    this.steps = new Steps(shared);
    this.fallbacks = new Fallbacks({
      ...shared,
      session: () => session.number,
      onLost: (shard) => this.#lost(shard),
      tell: onFallback,
    });
    this.lifecycle = new Lifecycle(shared);
    this.updates = new Updates({ ...shared, steps: this.steps });
    this.reads = Requests.open(wire, true);
    const reader = new BlockReader({
      ...shared,
      requests: this.reads,
      receivedBytes: () => wire.receivedBytes,
      link: new LinkWindow(IN_FLIGHT_BYTES_MAX),
      steps: this.steps,
    });
    this.puller = new Puller(parameters, reader);
    this.fragments = new Fragments({ ...shared, puller: this.puller });
  }

  /** Stops timers, repeats and renewals of the parts; may be called again. */
  stop(): void {
    this.session.stop();
    this.fallbacks.close();
    this.sender.close();
  }

  #joined({ session, shards, synchronization }: JoinReply): void {
    this.steps.sessionBegan(session, shards, synchronization);
    this.sender.start(session);
  }

  #held(): void {
    if (!this.#awaitsHost) return;
    this.#awaitsHost = false;
    this.sender.reconnected();
  }

  /** Tells the parts that a shard has undone some of what this trainer has read and sent. */
  #lost(shard: number): void {
    this.steps.fellBack(shard);
    this.#seen.clear();
    this.#errors.clear();
  }
}

/** @throws UNSUPPORTED unless the trainers of the job contribute to fragments. */
function requireRounds(call: string, { mode }: Synchronization): void {
  if (mode === "diloco") return;
  const text = `${call}: expected a job with synchronization diloco; this one is ${mode}`;
  throw new PserverError("UNSUPPORTED", text, { expected: "diloco", received: mode });
}

/** Timeout of a save: writing a large model takes longer than other calls. */
const SAVE_TIMEOUT_MS = 600_000;
const CLOSE_TIMEOUT_MS = 10_000;
const LEAVE_TIMEOUT_MS = 1_000;

/** What a {@link Client} is made of. */
export interface JoinedParts {
  /** @internal */
  readonly connections: readonly NatsConnection[];
  /** @internal */
  readonly wires: readonly Pick<NatsWire, "traffic">[];
  /** Where the counts of the client are left when it is closed; undefined for nowhere. */
  readonly statsDirectory: string | undefined;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly calls: Calls;
  readonly parts: ClientParts;
}

/**
 * A trainer of a job, made by `connect`. All calls take `timeoutMs` (30 s unless said otherwise)
 * and an abort `signal`, and may run at the same time; updates that are not awaited may be applied
 * in any order. Every error is a `PserverError`. Arrays given to a call must not change until its
 * promise settles: they are copied only when their turn comes.
 *
 * A tensor is `{dtype, shape, data}`, or a bare typed array, which takes the parameter's shape. Bools, as 0 and 1 in a
 * Uint8Array, and the bits of float16 and bfloat16 in a Uint16Array need their `dtype` named.
 */
export class Client {
  readonly job: string;
  readonly trainer: string;
  readonly #connections: readonly NatsConnection[];
  readonly #wires: JoinedParts["wires"];
  readonly #statsDirectory: string | undefined;
  readonly #subjects: JobSubjects;
  readonly #calls: Calls;
  readonly #parts: ClientParts;
  #closed: Promise<void> | undefined;

  /** Made by `connect`, from parts that have joined the job. */
  constructor(options: JoinedParts) {
    this.job = options.subjects.job;
    this.trainer = options.trainer;
    this.#connections = options.connections;
    this.#wires = options.wires;
    this.#statsDirectory = options.statsDirectory;
    this.#subjects = options.subjects;
    this.#calls = options.calls;
    this.#parts = options.parts;
  }

  /** Number of the trainer's session. */
  get session(): number {
    return this.#parts.session.number;
  }

  /** How the trainers of the job keep step: `async`, `sync`, `ssp` or `diloco`, with the job's settings. */
  get synchronization(): Synchronization {
    return this.#parts.session.synchronization;
  }

  /** Returns what this client has done since it joined, without a request; also after {@link close}. */
  stats(): ClientStats {
    const traffic = this.#wires.map((wire) => wire.traffic);
    const sum = (of: keyof (typeof traffic)[number]): number =>
      traffic.reduce((total, each) => total + each[of], 0);
    return {
      ...this.#calls.counts,
      ...this.#parts.sender.counts,
      reads: this.#parts.reads.asked,
      sentBytes: sum("sentBytes"),
      receivedBytes: sum("receivedBytes"),
      reconnects: sum("reconnects"),
    };
  }

  /** Steps this trainer has ended, those that closed before it entered included. */
  get stepsEnded(): number {
    return this.#parts.steps.ended;
  }

  /**
   * Asks to initialize the job. True: this trainer is selected; it calls {@link initParam} for
   * every parameter and then {@link finishInit}. False: another one has done so, or, with
   * `wait: false`, is doing so. A selected trainer that dies is replaced by one that waits.
   * @throws TIMEOUT, naming the trainer waited for.
   */
  beginInit(options: BeginOptions = {}): Promise<boolean> {
    const { wait = true } = options;
    return this.#calls.run("beginInit", options, (deadline) =>
      this.#parts.lifecycle.begin(wait, deadline),
    );
  }

  /**
   * Declares a parameter and stores its first values. Calls may run at the same time. A call that has
   * failed, with OUTCOME_UNKNOWN for instance, may be repeated with the same values.
   * @throws NOT_SELECTED unless {@link beginInit} returned true; BAD_NAME, BAD_DTYPE, BAD_SHAPE,
   * BAD_CONFIG or NON_FINITE for what is wrong with it.
   */
  initParam(
    name: string,
    tensor: TensorLike,
    config?: ParameterConfigInput,
    options?: CallOptions,
  ): Promise<void> {
    return this.#calls.run(`initParam(${quoteName(name)})`, options, (deadline) =>
      this.#parts.lifecycle.initParam(name, tensor, config, deadline),
    );
  }

  /**
   * Declares several parameters and stores their first values, with fewer messages than as many calls of
   * {@link initParam}. `config` is that of all of them, or gives that of each. All values are checked before
   * anything is sent. A call that has failed may be repeated with the same values, in whole or in part.
   * `optimizerState` gives what the optimizer of a parameter has kept of its values elsewhere, with which it goes on.
   * @throws as {@link initParam} does; EMPTY without any tensor; BAD_LENGTH, BAD_VALUE for a state that is not one of
   * the parameter's optimizer.
   */
  initParams(
    tensors: TensorRecord,
    config?: ParameterConfigInput | ((name: string) => ParameterConfigInput | undefined),
    options: InitOptions = {},
  ): Promise<void> {
    const configOf = typeof config === "function" ? config : () => config;
    return this.#calls.run("initParams", options, (deadline) =>
      this.#parts.lifecycle.initParams(tensors, configOf, deadline, options.optimizerState),
    );
  }

  /**
   * Ends the initialization: from now on the parameters can be read and updated.
   * @throws INCOMPLETE, naming blocks that are declared but not stored; NO_SPACE if the broker
   * cannot hold the job.
   */
  finishInit(options?: CallOptions): Promise<void> {
    return this.#calls.run("finishInit", options, (deadline) =>
      this.#parts.lifecycle.finish(deadline),
    );
  }

  /**
   * Gives up the initialization for which this trainer is selected: another one that waits is selected, or
   * this one if it asks again; what has been initialized meanwhile is dropped. Does nothing if the job is
   * initialized. For a trainer that has failed to initialize the job and goes on.
   * @throws NOT_SELECTED unless {@link beginInit} returned true.
   */
  abortInit(options?: CallOptions): Promise<void> {
    return this.#calls.run("abortInit", options, (deadline) =>
      this.#parts.lifecycle.abort(deadline),
    );
  }

  /**
   * Applies each parameter's optimizer once with these gradients, of whole parameters or, if they are
   * configured `sparse`, of some rows; an empty list of rows sends nothing. A parameter of one block
   * (up to 4 MiB) is updated in one transaction, a larger one block by block.
   *
   * In a `sync` job the gradients are added to those of the other trainers, and applied when the
   * step closes; the call waits until the step before has closed. In a `sync` or `ssp` job it ends
   * the trainer's step, unless `endStep` is false.
   * @throws NO_LEARNING_RATE, UNKNOWN_PARAMETER, NOT_INITIALIZED, BAD_DTYPE, BAD_SHAPE, BAD_INDEX,
   * NON_FINITE, STATIC, UNSUPPORTED or EMPTY before anything is sent; OUTCOME_UNKNOWN at the deadline,
   * naming the block updates that were applied once or not at all. A trainer that has lost its place in the
   * steps, because it was paused, enters again and sends in the step that is open then; NOT_MEMBER or LATE if
   * the step that closed without it had taken some of the blocks, which the error names.
   */
  sendGrads(grads: GradientRecord, options: GradOptions = {}): Promise<GradResult> {
    return this.#calls.run("sendGrads", options, (deadline) =>
      this.#parts.updates.sendGrads(grads, deadline, options),
    );
  }

  /**
   * Ends this trainer's step, once the gradients it has sent are stored: for a step of several calls
   * of {@link sendGrads}, or of none. Does nothing in an `async` job.
   */
  endStep(options?: CallOptions): Promise<void> {
    return this.#calls.run("endStep", options, (deadline) => this.#parts.steps.endStep(deadline));
  }

  /**
   * Leaves the steps or rounds of the job, so that the other trainers no longer wait for this one; its next gradient
   * or contribution enters again. {@link close} does the same. Does nothing in an `async` job.
   */
  exitSteps(options?: CallOptions): Promise<void> {
    const { fragments, steps } = this.#parts;
    const part = this.synchronization.mode === "diloco" ? fragments : steps;
    return this.#calls.run("exitSteps", options, (deadline) => part.exit(deadline));
  }

  /**
   * Makes this trainer one that the rounds of a `diloco` job may wait for, before its first contribution, which does
   * the same.
   * @throws UNSUPPORTED in any other job.
   */
  enterRounds(options?: CallOptions): Promise<void> {
    return this.#calls.run("enterRounds", options, (deadline) => {
      requireRounds("enterRounds", this.synchronization);
      return this.#parts.fragments.enter(deadline);
    });
  }

  /**
   * Contributes what this trainer has learned since it pulled a fragment in a `diloco` job: a displacement, or the
   * present values, of every parameter of the fragment. The contribution is one transaction, also if it goes in several
   * records. It counts in the open round, whose result {@link pullFragment} returns; nobody waits for that here. From
   * one version of a fragment a trainer contributes once.
   * @returns the round that it counts in, or that it came too late.
   * @throws UNSUPPORTED in any other job; UNKNOWN_PARAMETER, NOT_INITIALIZED, BAD_DTYPE, BAD_SHAPE, NON_FINITE or
   * BAD_VALUE for what is wrong with it; BAD_LENGTH unless all parameters of the fragment are there; BUSY if the shard
   * keeps too many contributions, or the round has as many as it may; NOT_SAMPLED if others were drawn for the round,
   * see {@link sampling}; OUTCOME_UNKNOWN at the deadline if it counts once or not at
   * all.
   */
  contribute(
    fragment: string,
    tensors: TensorRecord,
    work: ContributionWork,
    options?: CallOptions,
  ): Promise<ContributionResult> {
    return this.#calls.run(`contribute(${quoteName(fragment)})`, options, (deadline) => {
      requireRounds("contribute", this.synchronization);
      return this.#parts.fragments.contribute(fragment, tensors, work, deadline);
    });
  }

  /**
   * Returns the present versions of all fragments of a `diloco` job, which are how many rounds of each have closed, and
   * what became of this trainer's contributions.
   * @throws UNSUPPORTED in any other job.
   */
  fragments(options?: CallOptions): Promise<FragmentVersions> {
    return this.#calls.run("fragments", options, (deadline) => {
      requireRounds("fragments", this.synchronization);
      return this.#parts.fragments.versions(deadline);
    });
  }

  /**
   * Returns whether this trainer may contribute to the open round of a fragment of a `diloco` job, which it becomes a
   * member of for that; with `minVersion` it waits until so many rounds have closed. Everybody may unless the job draws
   * samples of its members: then a contribution of anybody else is rejected with NOT_SAMPLED, so ask before training.
   * @throws UNSUPPORTED in any other job; UNKNOWN_PARAMETER if no parameter belongs to the fragment; TIMEOUT.
   */
  sampling(
    fragment: string,
    options: Pick<FragmentMode, "minVersion"> & CallOptions = {},
  ): Promise<Sampling> {
    return this.#calls.run(`sampling(${quoteName(fragment)})`, options, (deadline) => {
      requireRounds("sampling", this.synchronization);
      return this.#parts.fragments.sampling(fragment, options.minVersion ?? 0, deadline);
    });
  }

  /**
   * Reads all parameters of a fragment of a `diloco` job at one version, the present one; with `minVersion` it waits
   * until so many rounds have closed.
   * @throws UNSUPPORTED in any other job; UNKNOWN_PARAMETER if no parameter belongs to the fragment; TIMEOUT; else as
   * {@link getParams} does.
   */
  pullFragment(
    fragment: string,
    options: FragmentMode & CallOptions = {},
  ): Promise<PulledFragment> {
    return this.#calls.run(`pullFragment(${quoteName(fragment)})`, options, (deadline) => {
      requireRounds("pullFragment", this.synchronization);
      return this.#parts.fragments.pull(fragment, options, deadline);
    });
  }

  /**
   * Reads the values of parameters, in request order; waits until the job is initialized. They are in new
   * arrays, or in those of `into`, which saves a training loop the memory; the contents of these are
   * undefined until the call has succeeded. Values that have not changed since one of the results in `known`
   * was read are not sent again. Sees every update of this client that was acknowledged before, and never an
   * older state than an earlier read did. A member of a `sync` job waits until the steps that it has ended
   * have closed; a member of an `ssp` job, until all but the last `staleness` of them have.
   * @throws UNKNOWN_PARAMETER naming the parameter; EMPTY; NOT_INITIALIZED at the deadline, or TIMEOUT
   * naming trainers waited for; BAD_DTYPE or BAD_LENGTH for an array of `into` that does not fit;
   * UNSUPPORTED for an encoding of another type than float32.
   */
  getParams(names: readonly string[], options: PullOptions = {}): Promise<NamedTensor[]> {
    return this.#calls.run("getParams", options, (deadline) => {
      if (names.length > 0) return this.#pull(names, deadline, options);
      throw new PserverError("EMPTY", "getParams: expected at least one name; received none");
    });
  }

  /** Overwrites the values of parameters. @throws as {@link sendGrads} does. */
  setParams(tensors: TensorRecord, options: UpdateOptions = {}): Promise<void> {
    return this.#calls.run("setParams", options, (deadline) =>
      this.#parts.updates.setParams(tensors, deadline, options),
    );
  }

  /** Reads the values of one parameter as {@link getParams} does; `into` is the array itself. */
  pullFull(name: string, options: ReadOptions & { into?: TensorData } = {}): Promise<Tensor> {
    const { into, encoding } = options;
    const mode = { encoding, ...(into === undefined ? {} : { into: { [name]: into } }) };
    return this.#calls.run(`pullFull(${quoteName(name)})`, options, (deadline) =>
      this.#pullOne(name, deadline, mode),
    );
  }

  /**
   * Reads the elements at the cartesian product of index lists, one for each dimension, as numpy's
   * `a[np.ix_(…)]` does. The result is as long in each dimension as its list. A list may be in any order,
   * repeat numbers, and count from the end with negative ones. With an empty list the result has no elements
   * and a 0 in its shape. Only these elements travel. Everything else is as in {@link getParams}; `into` is
   * the array itself.
   * @throws BAD_INDEX for a wrong number of lists or a number outside its dimension.
   */
  pullPart(
    name: string,
    indices: readonly IndexList[],
    options: ReadOptions & { into?: TensorData } = {},
  ): Promise<Tensor> {
    return this.#calls.run(`pullPart(${quoteName(name)})`, options, (deadline) => {
      const { puller, steps } = this.#parts;
      const { encoding, into } = options;
      const mode = { encoding, into, step: steps.readStep };
      return puller.pullPart(name, indices, deadline, mode);
    });
  }

  /** Computes value = alpha · value + beta · tensor. @throws as {@link sendGrads} does. */
  pushFull(
    name: string,
    tensor: TensorLike,
    alpha: number,
    beta: number,
    options: PushOptions = {},
  ): Promise<void> {
    return this.#calls.run(`pushFull(${quoteName(name)})`, options, (deadline) =>
      this.#parts.updates.pushFull(name, tensor, { alpha, beta }, deadline, options),
    );
  }

  /**
   * Computes value = alpha · value + beta · tensor for the elements that {@link pullPart} would give, as
   * numpy's `a[np.ix_(…)] = alpha * a[np.ix_(…)] + beta * tensor` does: of an element that is named
   * repeatedly the last one counts. Only these elements travel. Nothing is sent if a list is empty. Each
   * block is updated in one transaction, unless its elements and their numbers are too large for a message.
   * @param tensor of the shape that the lists' lengths give, or a bare array of as many elements.
   * @throws BAD_INDEX as {@link pullPart} does; else as {@link sendGrads} does.
   */
  pushAsPart(
    name: string,
    tensor: TensorLike,
    indices: readonly IndexList[],
    alpha: number,
    beta: number,
    options: PushOptions = {},
  ): Promise<void> {
    const part = { name, tensor, indices };
    return this.#calls.run(`pushAsPart(${quoteName(name)})`, options, (deadline) =>
      this.#parts.updates.pushAsPart(part, { alpha, beta }, deadline, options),
    );
  }

  /**
   * Creates a parameter with this value, unless it exists. In either case returns the present value. Of
   * several trainers that call it at once, one is selected and the others wait for it. A selected one whose
   * call fails gives that up, for which the call may take 2 s longer, and another one is selected.
   * @throws BAD_DTYPE or BAD_SHAPE if it exists with another type or shape.
   */
  createIfNotAlreadyCreated(
    name: string,
    tensor: TensorLike,
    config?: ParameterConfigInput,
    options?: CallOptions,
  ): Promise<Tensor> {
    const what = `createIfNotAlreadyCreated(${quoteName(name)})`;
    return this.#calls.run(what, options, async (deadline) => {
      await this.#parts.lifecycle.create(name, tensor, config, deadline);
      return this.#pullOne(name, deadline);
    });
  }

  /**
   * Writes a remark into the journal, behind what this client has sent to shard 0 before: values by name,
   * such as `{loss: 0.3, step: 12}`, each a number, a text or a boolean. A number that is not finite is kept as
   * the text `NaN`, `Infinity` or `-Infinity`; a bigint must be given as text. It changes no parameter;
   * `pserver log` shows it in its place and `pserver plot` draws its numbers. The text of an entry `mark`
   * names the note, so that commands find this point again. Acknowledged as an update is.
   * @throws BAD_VALUE or TOO_LARGE (more than 64 entries or 4 KiB) before anything is sent.
   */
  note(entries: NoteEntries, options: UpdateOptions = {}): Promise<void> {
    return this.#calls.run("note", options, (deadline) =>
      this.#parts.updates.note(entries, deadline, options.ack),
    );
  }

  /**
   * Has a host write the model to a file below its model directory; takes up to 10 minutes. The ending
   * chooses the format: `.safetensors`, `.npz` or `.tar`; a name that ends in `/` or has no ending means a
   * directory.
   * @throws BAD_PATH, IO or DISK_FULL as the host says; TIMEOUT or ABORTED if it is ended early: the
   * host then stops writing, and what was there before stays.
   */
  saveModel(path: string, options?: SaveOptions): Promise<SavedModel> {
    return this.#calls.run(
      "saveModel",
      options,
      (deadline) => {
        const { requests } = this.#parts;
        const { trainer } = this;
        const subjects = this.#subjects;
        return saveModel({ requests, subjects, trainer }, path, deadline, options?.onProgress);
      },
      SAVE_TIMEOUT_MS,
    );
  }

  /** Asks for the state of the job: whether it is initialized, by whom, and where its journals stood then. */
  status(options?: CallOptions): Promise<Omit<StatusReply, "parameters" | "more">> {
    return this.#calls.run("status", options, async (deadline) => {
      const { state, epoch, by, shards, at } = await this.#parts.parameters.status({}, deadline);
      return { state, epoch, by, shards, at };
    });
  }

  /** Lists every parameter of the job, in the order of names, whether ready or not. */
  listParams(options?: CallOptions): Promise<ParameterInfo[]> {
    return this.#calls.run("listParams", options, async (deadline) => {
      const ask = (request: StatusRequest): Promise<StatusReply> =>
        this.#parts.parameters.status(request, deadline);
      return (await readStatusPages(ask)).parameters;
    });
  }

  /**
   * Waits for calls under way (10 s unless `timeoutMs` says otherwise), ends those that are left
   * with CLOSED, gives the lease back and closes the connections. May be called again.
   */
  close(options: CallOptions = {}): Promise<void> {
    this.#closed ??= this.#close(options);
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(options: CallOptions): Promise<void> {
    const deadline = Deadline.start("close", options, CLOSE_TIMEOUT_MS);
    await this.#calls.close(deadline);
    deadline.dispose();
    const leaving = Deadline.start("leave", { timeoutMs: LEAVE_TIMEOUT_MS });
    // Without an answer the lease runs out by itself.
    await this.#parts.session.leave(leaving).catch(() => {});
    leaving.dispose();
    this.#parts.stop();
    for (const connection of this.#connections) {
      if (!connection.isClosed()) await connection.close();
    }
    await this.#leaveStats();
  }

  /** Writes the counts for whoever has asked for them. Nothing depends on that, so a failure is nobody's. */
  async #leaveStats(): Promise<void> {
    if (this.#statsDirectory === undefined) return;
    const path = join(this.#statsDirectory, `${process.pid}-${this.session}.json`);
    const counts = { trainer: this.trainer, ...this.stats() };
    await writeFile(path, `${JSON.stringify(counts)}\n`).catch(() => undefined);
  }

  #pull(names: readonly string[], deadline: Deadline, mode: PullMode): Promise<NamedTensor[]> {
    const { puller, steps } = this.#parts;
    const { into, known, encoding } = mode;
    return puller.pull(names, deadline, { into, known, encoding, step: steps.readStep });
  }

  async #pullOne(name: string, deadline: Deadline, mode: PullMode = {}): Promise<Tensor> {
    const [tensor] = await this.#pull([name], deadline, mode);
    if (tensor === undefined) throw new PserverError("INTERNAL", "a pull returned no tensor");
    return tensor;
  }
}
