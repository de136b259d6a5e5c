import { type ParameterConfigInput, toSharedConfig } from "../../protocol/config/index.ts";
import { ensureError, PserverError, yieldsInit } from "../../protocol/errors.ts";
import {
  type BeginReply,
  type Declaration,
  type ParameterInfo,
  parseBeginReply,
  parseParameters,
} from "../../protocol/lifecycle-messages.ts";
import { escapeName, quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type Tensor, type TensorLike, toTensor } from "../../protocol/tensor.ts";
import type { Positions } from "../core/positions.ts";
import { initUpdates } from "../push/block-updates.ts";
import { inBatches } from "../push/fill-batches.ts";
import { checkFiniteElements, fitTensor, named } from "../push/fit-tensor.ts";
import { entriesOf, type TensorRecord } from "../push/tensor-record.ts";
import type { Session } from "../shell/session.ts";
import type { SendOptions, UpdateSender } from "../shell/update-sender.ts";
import type { UpdateSource } from "../shell/update-source.ts";
import { allOrFirstError } from "../timing/all-or-first-error.ts";
import { Backoff } from "../timing/backoff.ts";
import type { Deadline } from "../timing/deadline.ts";
import { Declarations } from "./declarations.ts";
import { OpenInits } from "./open-inits.ts";
import type { Parameters } from "./parameters.ts";

/** Dependencies of Lifecycle. */
export interface LifecycleDeps {
  readonly session: Session;
  readonly sender: UpdateSender;
  readonly parameters: Parameters;
  readonly positions: Positions;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** A declared parameter and the values that it is initialized with. */
interface FirstValues {
  readonly info: ParameterInfo;
  readonly tensor: Tensor;
}

/** Initialization of the job by one trainer, and of single parameters by whoever comes first. */
export class Lifecycle {
  readonly #options: LifecycleDeps;
  readonly #declarations: Declarations;
  readonly #openInits = new OpenInits();
  /** Epoch of the initialization this trainer was selected for. */
  #epoch: number | undefined;

  constructor(options: LifecycleDeps) {
    this.#options = options;
    this.#declarations = new Declarations(options.session, options.payloadBytesMax);
  }

  /** Whether this trainer is selected; see `Client.beginInit`. */
  async begin(wait: boolean, deadline: Deadline): Promise<boolean> {
    const reply = await this.#repeat(deadline, wait, async () =>
      parseBeginReply(await this.#options.session.request("begin", {}, deadline)),
    );
    this.#epoch = reply.selected ? reply.epoch : undefined;
    return reply.selected;
  }

  /** Declares a parameter and stores its values; see `Client.initParam`. */
  async initParam(
    name: string,
    given: TensorLike,
    config: ParameterConfigInput | undefined,
    deadline: Deadline,
  ): Promise<void> {
    const epoch = this.#selectedEpoch(deadline.what);
    const { declaration, tensor } = declare(name, given, config);
    const info = await this.#declarations.declare(declaration, epoch, deadline);
    await this.#store([{ info, tensor }], deadline);
  }

  /** Declares several parameters and stores their values; see `Client.initParams`. */
  async initParams(
    tensors: TensorRecord,
    configOf: (name: string) => ParameterConfigInput | undefined,
    deadline: Deadline,
  ): Promise<void> {
    const epoch = this.#selectedEpoch(deadline.what);
    const declared = entriesOf(tensors, deadline.what).map(([name, given]) =>
      declare(name, given, configOf(name)),
    );
    const values = await allOrFirstError(
      declared.map(async ({ declaration, tensor }) => {
        const info = await this.#declarations.declare(declaration, epoch, deadline);
        return { info, tensor };
      }),
    );
    await this.#store(values, deadline);
  }

  /** Ends the initialization; see `Client.finishInit`. */
  async finish(deadline: Deadline): Promise<void> {
    const epoch = this.#selectedEpoch(deadline.what);
    const at = this.#options.positions.list();
    await this.#options.session.request("finish", { epoch, at }, deadline);
    this.#epoch = undefined;
  }

  /** Initializes one parameter unless that is done; see `Client.createIfNotAlreadyCreated`. */
  async create(
    name: string,
    given: TensorLike,
    config: ParameterConfigInput | undefined,
    deadline: Deadline,
  ): Promise<void> {
    const { declaration, tensor } = declare(name, given, config);
    await this.#repeat(deadline, true, async () => {
      const fields = await this.#options.session.request(
        "create",
        { parameter: declaration },
        deadline,
      );
      const reply = parseBeginReply(fields);
      if (!reply.selected) return reply;
      const [info] = parseParameters(fields);
      if (!info) {
        throw new PserverError(
          "BAD_MESSAGE",
          "create: expected the parameter in the reply; received none",
        );
      }
      return await this.#fill(info, reply, tensor, deadline);
    });
    const [info] = await this.#options.parameters.waitFor([name], deadline);
    if (info !== undefined) fitTensor(info, given);
  }

  /** Initializes the one parameter this trainer was selected for. */
  async #fill(
    info: ParameterInfo,
    reply: BeginReply,
    tensor: Tensor,
    deadline: Deadline,
  ): Promise<BeginReply> {
    const { session, positions } = this.#options;
    try {
      await this.#store([{ info, tensor }], deadline);
      const at = positions.list();
      await session.request("finish", { epoch: reply.epoch, parameter: info.name, at }, deadline);
      return { ...reply, state: "ready" };
    } catch (caught) {
      const error = ensureError(caught);
      // Another trainer took over, because this one's lease was lost: wait for that one.
      if (!yieldsInit(error.code)) throw error;
      return { ...reply, selected: false, state: "initializing" };
    }
  }

  /**
   * Stores the values of parameters under their epochs. What was tried before goes apart, block by block: in a
   * repeat, blocks that are there already count, and in a batch they would have all others rejected.
   */
  async #store(values: readonly FirstValues[], deadline: Deadline): Promise<void> {
    const sources = (each: FirstValues): UpdateSource[] =>
      initUpdates(this.#options, each.info, each.tensor);
    const fresh = values.filter(({ info }) => !this.#openInits.has(info));
    const sends = values
      .filter(({ info }) => this.#openInits.has(info))
      .map((each) => {
        const countsPresent = this.#openInits.isRepeat(each.info, each.tensor.data);
        return this.#send([each], sources(each), { deadline, countsPresent });
      });
    if (fresh.length > 0) {
      const batches = inBatches(fresh.flatMap(sources), this.#options);
      sends.push(this.#send(fresh, batches, { deadline }));
    }
    await allOrFirstError(sends);
  }

  /** Sends the records of these values, and remembers whether that has succeeded. */
  async #send(
    values: readonly FirstValues[],
    sources: readonly UpdateSource[],
    options: SendOptions,
  ): Promise<void> {
    try {
      await this.#options.sender.send(sources, options);
      for (const { info } of values) this.#openInits.done(info);
    } catch (error) {
      for (const { info, tensor } of values) this.#openInits.failed(info, tensor.data);
      throw error;
    }
  }

  /** Asks until this trainer is selected or there is nothing left to initialize. */
  async #repeat(
    deadline: Deadline,
    wait: boolean,
    ask: () => Promise<BeginReply>,
  ): Promise<BeginReply> {
    const backoff = new Backoff();
    while (true) {
      const reply = await ask();
      if (reply.selected || reply.state === "ready" || !wait) return reply;
      const delayMs = backoff.nextMs();
      if (!deadline.allows(delayMs)) throw stillInitializing(deadline.what, reply);
      await deadline.sleep(delayMs);
    }
  }

  #selectedEpoch(what: string): number {
    if (this.#epoch !== undefined) return this.#epoch;
    throw new PserverError(
      "NOT_SELECTED",
      `${what}: this trainer is not selected to initialize; call beginInit, and initialize only if it returns true`,
      { trainer: this.#options.trainer },
    );
  }
}

function declare(
  name: string,
  given: TensorLike,
  config: ParameterConfigInput | undefined,
): { declaration: Declaration; tensor: Tensor } {
  escapeName(name);
  const tensor = named(name, () => toTensor(given));
  const { dtype, shape } = tensor;
  const declaration = { name, dtype, shape, config: toSharedConfig(config) };
  checkFiniteElements(declaration, tensor.data);
  return { declaration, tensor };
}

function stillInitializing(what: string, { by, epoch }: BeginReply): PserverError {
  return new PserverError(
    "TIMEOUT",
    `${what}: trainer ${quoteName(by)} is still initializing (epoch ${epoch})`,
    { by, epoch },
  );
}
