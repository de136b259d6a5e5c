import { checkFinite, checkLearningRate } from "../../protocol/config/index.ts";
import { type Encoding, encodedBytes } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import { HEADER_BYTES_MAX } from "../../protocol/limits.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Deadline } from "../calls/deadline.ts";
import type { Parameters } from "../calls/parameters.ts";
import { type IndexList, planPart, slicePart } from "../parts.ts";
import type { Session } from "../shell/session.ts";
import type { GradResult, Steps } from "../shell/steps.ts";
import type { UpdateSender, UpdateSource } from "../shell/update-sender.ts";
import {
  type Entries,
  entriesOf,
  type GradientRecord,
  gradientUpdates,
  type Push,
  partUpdates,
  pushUpdates,
  setUpdates,
  type TensorRecord,
} from "./block-updates.ts";
import { inBatches } from "./fill-batches.ts";
import { checkFiniteElements, fitData, fitTensor } from "./fit-tensor.ts";

/** When an update is done: folded by the shard's owner, or stored in the journal. */
export type Ack = "applied" | "stored";

/** Dependencies of Updates. */
export interface UpdatesDeps {
  readonly sender: UpdateSender;
  readonly parameters: Parameters;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly seen: SeenVersions;
  readonly steps: Steps;
  readonly session: Session;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** How the records of an update are sent. */
export interface UpdateMode {
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
    options: UpdateMode & { learningRate?: number; endStep?: boolean },
  ): Promise<GradResult> {
    const { learningRate, encoding, endStep = true } = options;
    if (learningRate !== undefined) checkLearningRate(learningRate);
    const { subjects, trainer, seen, steps, sender } = this.#options;
    let step: number | undefined;
    const mode = { subjects, trainer, learningRate, encoding, seen, step: () => step };
    return this.#update(
      entriesOf(grads, deadline.what),
      deadline,
      (info, given) => gradientUpdates(info, given, mode),
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

  /** value = alpha · value + beta · tensor; see `Client.pushFull`. */
  async pushFull(
    name: string,
    given: TensorLike,
    mix: Mix,
    deadline: Deadline,
    mode: UpdateMode,
  ): Promise<void> {
    const push = mixPush(mix, mode.encoding);
    await this.#send([[name, given]], deadline, mode, (info, value) => {
      const { data } = fitTensor(info, value);
      checkFiniteElements(info, data, mode.encoding);
      return pushUpdates(this.#options, info, data, push);
    });
  }

  /** The same for some elements; see `Client.pushAsPart`. */
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
    const push = mixPush(mix, encoding);
    const { name, tensor, indices } = part;
    await this.#send([[name, tensor]], deadline, mode, (info, given) => {
      const { shape, elements, blocks } = planPart(info, indices);
      const data = fitData(info, given, shape, elements);
      checkFiniteElements(info, data, encoding);
      const bytesMax = this.#options.payloadBytesMax() - HEADER_BYTES_MAX;
      const elementBytes = encodedBytes(info.dtype, encoding, 1);
      const slices = blocks.flatMap((block) => slicePart(block, elementBytes, bytesMax));
      return partUpdates(this.#options, info, slices, data, push);
    });
  }

  /** Overwrites parameters; see `Client.setParams`. */
  async setParams(tensors: TensorRecord, deadline: Deadline, mode: UpdateMode): Promise<void> {
    await this.#send(entriesOf(tensors, deadline.what), deadline, mode, (info, given) => {
      const tensor = fitTensor(info, given);
      checkFiniteElements(info, tensor.data);
      return setUpdates(this.#options, info, tensor);
    });
  }

  #send(
    entries: Entries<TensorLike>,
    deadline: Deadline,
    { ack }: UpdateMode,
    toUpdates: (info: ParameterInfo, given: TensorLike) => UpdateSource[],
  ): Promise<unknown> {
    const options = { deadline, stored: ack === "stored" };
    return this.#update(entries, deadline, toUpdates, (sources) =>
      this.#options.sender.send(sources, options),
    );
  }

  async #update<Given, Result>(
    entries: Entries<Given>,
    deadline: Deadline,
    toUpdates: (info: ParameterInfo, given: Given) => UpdateSource[],
    send: (sources: readonly UpdateSource[]) => Promise<Result>,
  ): Promise<Result> {
    const { parameters } = this.#options;
    const names = entries.map(([name]) => name);
    const infos = await parameters.require(names, deadline);
    try {
      const sources: UpdateSource[] = [];
      infos.forEach((info, i) => {
        const [, given] = entries[i] as Entries<Given>[number];
        if (info.config.static) throw isStatic(info.name);
        for (const source of toUpdates(info, given)) sources.push(source);
      });
      return await send(inBatches(sources, this.#options));
    } catch (caught) {
      const error = ensureError(caught);
      // Initialized anew since it was looked up: the next call looks it up again.
      if (reactionTo(error.code) === "look-up") for (const name of names) parameters.forget(name);
      throw error;
    }
  }
}

function mixPush(mix: Mix, encoding: Encoding | undefined): Push {
  const alpha = checkFinite(mix.alpha, "alpha");
  const beta = checkFinite(mix.beta, "beta");
  return {
    ...(encoding === undefined ? {} : { encoding }),
    operation: () => ({ op: "mix", alpha, beta }),
  };
}

function isStatic(parameter: string): PserverError {
  return new PserverError(
    "STATIC",
    `${quoteName(parameter)} keeps its first values: its config says static`,
    { parameter },
  );
}

/**
 * Remembers the version of each block that this trainer read last, which its next gradient is made from.
 * A gradient names it, so that the history tells how old the values were, whether or not the
 * parameter's learning rate depends on it.
 */
export class SeenVersions {
  readonly #byParameter = new Map<string, { epoch: number; versions: Map<number, number> }>();

  /** A block was read. */
  note({ name, epoch }: ParameterInfo, block: number, version: number): void {
    let seen = this.#byParameter.get(name);
    if (seen?.epoch !== epoch) {
      seen = { epoch, versions: new Map() };
      this.#byParameter.set(name, seen);
    }
    seen.versions.set(block, version);
  }

  /** Forgets all versions, after a shard has undone some of them. */
  clear(): void {
    this.#byParameter.clear();
  }

  /** The version last read; undefined if there is none. */
  get({ name, epoch }: ParameterInfo, block: number): number | undefined {
    const seen = this.#byParameter.get(name);
    return seen?.epoch === epoch ? seen.versions.get(block) : undefined;
  }
}
