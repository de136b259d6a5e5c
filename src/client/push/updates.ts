import { checkFinite, checkLearningRate, checkTakesPushes } from "../../protocol/config/index.ts";
import { type Encoding, encodedBytes, isGrouped } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import { HEADER_BYTES_MAX } from "../../protocol/limits.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import {
  checkNote,
  encodeNote,
  NOTE_BYTES_MAX,
  NOTE_SHARD,
  type NoteEntries,
} from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Ack, Deadline } from "../calls/calls.ts";
import type { Parameters, SeenVersions } from "../calls/parameters.ts";
import type { Session } from "../io/session.ts";
import type { GradResult, Steps } from "../io/steps.ts";
import type { UpdateSender, UpdateSource } from "../io/update-sender.ts";
import { type IndexList, planPart, slicePart } from "../part-plan.ts";
import {
  addGradient,
  addTensor,
  checkFiniteElements,
  type Entries,
  entriesOf,
  fitData,
  fitTensor,
  type GradientRecord,
  type TensorRecord,
} from "./block-updates.ts";
import type { RoundingErrors } from "./rounding-errors.ts";
import type { UpdateKind } from "./tensor-update.ts";
import { UpdateCollector } from "./update-collector.ts";

/** Dependencies of {@link collectorFor}. */
interface CollectorDeps {
  readonly session: Session;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** Returns a collector for the updates of one call; `isSingle`: each has a record of its own. */
export function collectorFor(
  { session, subjects, trainer, payloadBytesMax }: CollectorDeps,
  kind: UpdateKind,
  isSingle = false,
): UpdateCollector {
  return new UpdateCollector(kind, {
    sender: { subjects, trainer },
    payloadBytesMax: payloadBytesMax(),
    separatesIntegers: session.synchronization.mode === "sync",
    isSingle,
  });
}

/** Dependencies of Updates. */
export interface UpdatesDeps {
  readonly sender: UpdateSender;
  readonly parameters: Parameters;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly seen: SeenVersions;
  readonly errors: RoundingErrors;
  readonly steps: Steps;
  readonly session: Session;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** Options of an update that concern its records. */
interface UpdateMode {
  readonly ack?: Ack | undefined;
  readonly encoding?: Encoding | undefined;
}

/** value = alpha · value + beta · tensor. */
export interface Mix {
  readonly alpha: number;
  readonly beta: number;
}

/** Changes of initialized parameters. All tensors of a call are checked before any is sent. */
export class Updates {
  readonly #options: UpdatesDeps;

  constructor(options: UpdatesDeps) {
    this.#options = options;
  }

  /** Applies a gradient to each parameter; see `Client.sendGrads`. */
  async sendGrads(
    grads: GradientRecord,
    deadline: Deadline,
    options: UpdateMode & {
      readonly learningRate?: number;
      readonly errorFeedback?: boolean;
      readonly endStep?: boolean;
    },
  ): Promise<GradResult> {
    const { learningRate, encoding, errorFeedback = true, endStep = true } = options;
    if (learningRate !== undefined) checkLearningRate(learningRate);
    const { seen, steps, sender } = this.#options;
    let step: number | undefined;
    const operation = { op: "grad", lr: learningRate } as const;
    const errors = errorFeedback && isGrouped(encoding) ? this.#options.errors : undefined;
    const kind: UpdateKind = { verb: "push", encoding, errors, operation, step: () => step };
    const mode = { learningRate, encoding, errors, seen };
    return this.#update(
      { entries: entriesOf(grads, deadline.what), deadline, kind },
      (collector, info, given) => addGradient(collector, info, given, mode),
      (sources) => {
        const shards = sources.map(({ shard }) => shard);
        return steps.gradients({ shards, endStep }, deadline, (place) => {
          step = place.step;
          const { countsLate } = place;
          return sender.send(sources, { deadline, stored: options.ack === "stored", countsLate });
        });
      },
    );
  }

  /** Computes value = alpha · value + beta · tensor; see `Client.pushFull`. */
  async pushFull(
    name: string,
    given: TensorLike,
    mix: Mix,
    deadline: Deadline,
    mode: UpdateMode,
  ): Promise<void> {
    const kind = mixKind(mix, mode.encoding);
    const call = { entries: { names: [name], values: [given] }, deadline, kind };
    await this.#send(call, mode, (collector, info, value) => {
      checkTakesPushes(info.dtype, info.name);
      const { data } = fitTensor(info, value);
      checkFiniteElements(info, data, mode.encoding);
      addTensor(collector, info, data);
    });
  }

  /** Does the same as {@link pushFull} for some elements; see `Client.pushAsPart`. */
  async pushAsPart(
    part: {
      readonly name: string;
      readonly tensor: TensorLike;
      readonly indices: readonly IndexList[];
    },
    mix: Mix,
    deadline: Deadline,
    mode: UpdateMode,
  ): Promise<void> {
    const { encoding } = mode;
    const { name, tensor, indices } = part;
    const entries = { names: [name], values: [tensor] };
    const call = { entries, deadline, kind: mixKind(mix, encoding) };
    await this.#send(call, mode, (collector, info, given) => {
      checkTakesPushes(info.dtype, info.name);
      const { shape, elements, blocks } = planPart(info, indices);
      const data = fitData(info, given, shape, elements);
      checkFiniteElements(info, data, encoding);
      const bytesMax = this.#options.payloadBytesMax() - HEADER_BYTES_MAX;
      const elementBytes = encodedBytes(info.dtype, encoding, 1);
      for (const block of blocks) {
        for (const slice of slicePart(block, elementBytes, bytesMax)) {
          collector.addSlice(info, slice, data);
        }
      }
    });
  }

  /** Overwrites parameters; see `Client.setParams`. */
  async setParams(tensors: TensorRecord, deadline: Deadline, mode: UpdateMode): Promise<void> {
    const call = { entries: entriesOf(tensors, deadline.what), deadline, kind: SET };
    await this.#send(call, mode, (collector, info, given) => {
      const { data } = fitTensor(info, given);
      checkFiniteElements(info, data);
      addTensor(collector, info, data);
    });
  }

  /** Writes a remark into the journal; see `Client.note`. The entries are copied. */
  async note(entries: NoteEntries, deadline: Deadline, ack?: Ack): Promise<void> {
    const { sender, subjects, trainer } = this.#options;
    const note = checkNote({ ...entries });
    const source: UpdateSource = {
      subject: subjects.note(NOTE_SHARD, trainer),
      shard: NOTE_SHARD,
      topic: { kind: "note" },
      blocks: 1,
      dataBytes: NOTE_BYTES_MAX,
      namesVersion: false,
      draft: (header) => encodeNote({ verb: "note", ...header, note }),
    };
    await sender.send([source], { deadline, stored: ack === "stored" });
  }

  #send(
    call: UpdateCallOf<TensorLike>,
    { ack }: UpdateMode,
    add: AddUpdates<TensorLike>,
  ): Promise<unknown> {
    const options = { deadline: call.deadline, stored: ack === "stored" };
    return this.#update(call, add, (sources) => this.#options.sender.send(sources, options));
  }

  async #update<Given, Result>(
    { entries, deadline, kind }: UpdateCallOf<Given>,
    add: AddUpdates<Given>,
    send: (sources: readonly UpdateSource[]) => Promise<Result>,
  ): Promise<Result> {
    const { parameters } = this.#options;
    const { names, values } = entries;
    const infos = await parameters.require(names, deadline);
    try {
      const collector = collectorFor(this.#options, kind);
      infos.forEach((info, i) => {
        if (info.config.static) throw isStatic(info.name);
        add(collector, info, values[i] as Given);
      });
      return await send(collector.finish());
    } catch (caught) {
      const error = ensureError(caught);
      // The parameter was initialized again after it was looked up: the next call looks it up again.
      if (reactionTo(error.code) === "look-up") for (const name of names) parameters.forget(name);
      throw error;
    }
  }
}

/** A call that changes parameters. */
interface UpdateCallOf<Given> {
  readonly entries: Entries<Given>;
  readonly deadline: Deadline;
  readonly kind: UpdateKind;
}

/** Checks what a call was given for a parameter, and adds its updates. */
type AddUpdates<Given> = (collector: UpdateCollector, info: ParameterInfo, given: Given) => void;

const SET: UpdateKind = { verb: "set" };

function mixKind(mix: Mix, encoding: Encoding | undefined): UpdateKind {
  const alpha = checkFinite(mix.alpha, "alpha");
  const beta = checkFinite(mix.beta, "beta");
  return { verb: "push", encoding, operation: { op: "mix", alpha, beta } };
}

function isStatic(parameter: string): PserverError {
  return new PserverError(
    "STATIC",
    `${quoteName(parameter)} keeps its first values: its config says static`,
    { parameter },
  );
}
