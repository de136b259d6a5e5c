import { checksum } from "../../protocol/checksum/checksum.ts";
import { type ParameterConfigInput, toSharedConfig } from "../../protocol/config/index.ts";
import { bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, yieldsInit } from "../../protocol/errors.ts";
import {
  type BeginReply,
  type Declaration,
  type ParameterInfo,
  parametersPerRequest,
  parseBeginReply,
  parseParameters,
} from "../../protocol/messages/lifecycle-messages.ts";
import { escapeName, quoteName } from "../../protocol/names.ts";
import type { JobSubjects, LifecycleVerb } from "../../protocol/subjects.ts";
import { type Tensor, type TensorLike, toTensor } from "../../protocol/tensor.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Session } from "../io/session.ts";
import type { SendOptions, UpdateSender, UpdateSource } from "../io/update-sender.ts";
import {
  addTensor,
  checkFiniteElements,
  entriesOf,
  fitTensor,
  named,
  type TensorRecord,
} from "../push/block-updates.ts";
import type { UpdateKind } from "../push/tensor-update.ts";
import { collectorFor } from "../push/updates.ts";
import { allOrFirstError, Backoff, Deadline } from "./calls.ts";
import type { Parameters } from "./parameters.ts";

const INIT: UpdateKind = { verb: "init" };

interface Waiting {
  readonly declaration: Declaration;
  readonly epoch: number;
  readonly deadline: Deadline;
  /** That of the request which declares it; undefined until it is sent. */
  request: Deadline | undefined;
  readonly resolve: (info: ParameterInfo) => void;
  readonly reject: (error: unknown) => void;
}

/** How long a call that fails to create a parameter may take longer to give that up. */
const GIVE_UP_MS = 2_000;

/** Requests under way at a time: enough to keep a host busy, and few enough to be answered before they are repeated. */
const REQUESTS_MAX = 8;

/**
 * Declares parameters: calls of one turn of the event loop share requests, each of as many parameters as hosts
 * take and the broker's largest message holds.
 */
class Declarations {
  readonly #session: Session;
  readonly #payloadBytesMax: () => number;
  #waiting: Waiting[] = [];
  #underWay = 0;

  /** `payloadBytesMax`: the largest message the broker takes. */
  constructor(session: Session, payloadBytesMax: () => number) {
    this.#session = session;
    this.#payloadBytesMax = payloadBytesMax;
  }

  /**
   * Declares a parameter; returns it with its layout and epoch. @throws the error in the reply to the
   * request; at the deadline, the last one after which it was sent again.
   */
  declare(declaration: Declaration, epoch: number, deadline: Deadline): Promise<ParameterInfo> {
    let waiting: Waiting | undefined;
    const declared = new Promise<ParameterInfo>((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#flush());
      waiting = { declaration, epoch, deadline, request: undefined, resolve, reject };
      this.#waiting.push(waiting);
    });
    return deadline.race(declared, () => waiting?.request);
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#underWay < REQUESTS_MAX) {
      const part = this.#waiting.splice(0, this.#nextLength());
      this.#underWay += 1;
      this.#declare(part)
        .catch((error: unknown) => {
          for (const { reject } of part) reject(error);
        })
        .finally(() => {
          this.#underWay -= 1;
          this.#flush();
        });
    }
  }

  /** Returns how many waiting declarations go into the next request, which is for one initialization. */
  #nextLength(): number {
    const epoch = this.#waiting[0]?.epoch;
    const most = this.#waiting.slice(0, parametersPerRequest(this.#payloadBytesMax()));
    const others = most.findIndex((waiting) => waiting.epoch !== epoch);
    return others < 0 ? most.length : others;
  }

  async #declare(part: readonly Waiting[]): Promise<void> {
    const epoch = part[0]?.epoch;
    // The request has the longest deadline of its calls; each call keeps to its own.
    const timeoutMs = Math.max(1, ...part.map(({ deadline }) => deadline.remainingMs));
    const deadline = Deadline.start("initParam", { timeoutMs });
    for (const waiting of part) waiting.request = deadline;
    try {
      const fields = await this.#session.request(
        "declare",
        { epoch, parameters: part.map(({ declaration }) => declaration) },
        deadline,
      );
      const infos = parseParameters(fields);
      part.forEach(({ declaration: { name }, resolve, reject }, i) => {
        const info = infos[i];
        if (info?.name === name) resolve(info);
        else reject(notInReply("declare", name));
      });
    } finally {
      deadline.dispose();
    }
  }
}

function notInReply(verb: LifecycleVerb, name: string): PserverError {
  return new PserverError(
    "BAD_MESSAGE",
    `${verb}: expected ${quoteName(name)} in the reply; received another parameter or none`,
    { parameter: name },
  );
}

interface OpenInit {
  readonly epoch: number;
  /** Checksum of the values that were sent; undefined if attempts have sent different values. */
  readonly crc: number | undefined;
}

/**
 * Remembers failed attempts to initialize parameters, some blocks of which may be stored. Under one epoch
 * only the selected session writes, so a block that is initialized already when the same values are sent
 * again is this client's own.
 */
class OpenInits {
  /** The failed attempts, by name of the parameter; success removes them. */
  readonly #open: Map<string, OpenInit> = new Map();

  /** Returns whether an attempt under this epoch has failed. */
  has({ name, epoch }: ParameterInfo): boolean {
    return this.#open.get(name)?.epoch === epoch;
  }

  /** Returns whether attempts under this epoch have failed and all of them sent these values. */
  isRepeat({ name, epoch }: ParameterInfo, data: TensorData): boolean {
    const open = this.#open.get(name);
    return open?.epoch === epoch && open.crc === checksum(bytesOf(data));
  }

  /** Notes that an attempt failed after it may have stored blocks. */
  failed({ name, epoch }: ParameterInfo, data: TensorData): void {
    const open = this.#open.get(name);
    const crc = checksum(bytesOf(data));
    const isOther = open?.epoch === epoch && open.crc !== crc;
    this.#open.set(name, { epoch, crc: isOther ? undefined : crc });
  }

  /** Notes that the parameter is initialized. */
  done({ name }: ParameterInfo): void {
    this.#open.delete(name);
  }
}

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

/**
 * Initializes the job if this trainer is selected, and single parameters that nobody else has initialized.
 */
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

  /** Asks whether this trainer is selected; see `Client.beginInit`. */
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
    const { names, values: given } = entriesOf(tensors, deadline.what);
    const declared = names.map((name, i) => declare(name, given[i] as TensorLike, configOf(name)));
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

  /** Gives the initialization up; see `Client.abortInit`. */
  async abort(deadline: Deadline): Promise<void> {
    const epoch = this.#selectedEpoch(deadline.what);
    await this.#options.session.request("abort", { epoch }, deadline);
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
      if (info?.name !== name) throw notInReply("create", name);
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
      if (!yieldsInit(error.code)) {
        await this.#giveUp(info.name, reply.epoch);
        throw error;
      }
      // This trainer's lease was lost and another one took over: wait for that one.
      return { ...reply, selected: false, state: "initializing" };
    }
  }

  /** Gives up a parameter that this trainer was selected to initialize and has failed to, so that another one can. */
  async #giveUp(parameter: string, epoch: number): Promise<void> {
    const deadline = Deadline.start("abort", { timeoutMs: GIVE_UP_MS });
    try {
      await this.#options.session.request("abort", { epoch, parameter }, deadline);
    } catch {
      // The call reports what it has failed with. Others wait until this trainer's lease ends, or it tries again.
    } finally {
      deadline.dispose();
    }
  }

  /**
   * Stores the values of parameters under their epochs. Values of an attempt that has failed are sent again
   * block by block, not in batches: blocks that are already stored count as applied, but in a batch one of
   * them would make the fold reject all the others.
   */
  async #store(values: readonly FirstValues[], deadline: Deadline): Promise<void> {
    const sources = (each: readonly FirstValues[], isSingle: boolean): UpdateSource[] => {
      const collector = collectorFor(this.#options, INIT, isSingle);
      for (const { info, tensor } of each) addTensor(collector, info, tensor.data);
      return collector.finish();
    };
    const fresh = values.filter(({ info }) => !this.#openInits.has(info));
    const sends = values
      .filter(({ info }) => this.#openInits.has(info))
      .map((each) => {
        const countsPresent = this.#openInits.isRepeat(each.info, each.tensor.data);
        return this.#send([each], sources([each], true), { deadline, countsPresent });
      });
    if (fresh.length > 0) {
      sends.push(this.#send(fresh, sources(fresh, false), { deadline }));
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
