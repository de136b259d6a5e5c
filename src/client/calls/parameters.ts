import { PserverError, reactionTo } from "../../protocol/errors.ts";
import {
  type ParameterInfo,
  parametersPerRequest,
  parseStatusReply,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/messages/lifecycle-messages.ts";
import { escapeName, quoteName } from "../../protocol/names.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Session } from "../io/session.ts";
import { Backoff, type Deadline } from "./calls.ts";

/** A look-up under way. */
interface LookUp {
  readonly parameter: Promise<ParameterInfo>;
  /** The deadline of the call that began it. */
  readonly deadline: Deadline;
}

/** A list of names, and the parameters that it stands for. */
interface PreparedSet {
  readonly names: readonly string[];
  readonly infos: readonly ParameterInfo[];
}

/** Lists of names that stay resolved: training loops push one and pull another one, again and again. */
const PREPARED_SETS_MAX = 4;

/** Caches type, shape, layout and epoch of the job's parameters that are ready. */
export class Parameters {
  readonly #session: Session;
  readonly #positions: Positions;
  readonly #payloadBytesMax: () => number;
  readonly #ready = new Map<string, ParameterInfo>();
  readonly #lookUps = new Map<string, LookUp>();
  /** The last lists of names that were resolved, the latest one first. */
  readonly #prepared: PreparedSet[] = [];

  /** `payloadBytesMax`: the largest message the broker takes. */
  constructor(session: Session, positions: Positions, payloadBytesMax: () => number) {
    this.#session = session;
    this.#positions = positions;
    this.#payloadBytesMax = payloadBytesMax;
  }

  /** Forgets a parameter, whose epoch has changed. */
  forget(name: string): void {
    if (this.#ready.delete(name)) this.#prepared.length = 0;
  }

  /**
   * Returns the parameters, in request order, without waiting for their initialization.
   * @throws BAD_NAME, UNKNOWN_PARAMETER, or NOT_INITIALIZED while the job or a parameter is not.
   */
  async require(names: readonly string[], deadline: Deadline): Promise<readonly ParameterInfo[]> {
    while (true) {
      const known = this.#known(names);
      if (known !== undefined) return known;
      const problem = await this.#fill(names, deadline);
      if (problem !== undefined) throw problem;
    }
  }

  /**
   * Returns the parameters, in request order, once all of them are initialized.
   * @throws BAD_NAME, and UNKNOWN_PARAMETER as soon as the job is initialized without one; at the deadline
   * NOT_INITIALIZED.
   */
  async waitFor(names: readonly string[], deadline: Deadline): Promise<readonly ParameterInfo[]> {
    const backoff = new Backoff();
    let problem: PserverError | undefined;
    while (true) {
      const known = this.#known(names);
      if (known !== undefined) return known;
      try {
        problem = await this.#fill(names, deadline);
      } catch (error) {
        // An earlier answer says more than the timeout of the last request.
        throw deadline.ended?.code === "TIMEOUT" ? (problem ?? error) : error;
      }
      if (problem === undefined) continue;
      const delayMs = backoff.nextMs();
      const canWait = reactionTo(problem.code) === "await-init";
      if (!canWait || !deadline.allows(delayMs)) throw problem;
      await deadline.sleep(delayMs);
    }
  }

  /**
   * Looks the parameter up again. Calls share one look-up; if the call that began it ends first, another call
   * begins a new one.
   */
  async refresh(name: string, deadline: Deadline): Promise<ParameterInfo> {
    while (true) {
      const lookUp = this.#lookUps.get(name) ?? this.#refresh(name, deadline);
      try {
        return await deadline.race(lookUp.parameter, () => lookUp.deadline);
      } catch (error) {
        const isOwn = lookUp.deadline === deadline || deadline.ended !== undefined;
        if (isOwn || lookUp.deadline.ended === undefined) throw error;
      }
    }
  }

  /** Looks parameters up again, many in one request; returns them in request order. */
  async refreshAll(
    names: readonly string[],
    deadline: Deadline,
  ): Promise<readonly ParameterInfo[]> {
    const [only] = names;
    if (only !== undefined && names.length === 1) return [await this.refresh(only, deadline)];
    for (const name of names) this.forget(name);
    return this.waitFor(names, deadline);
  }

  #refresh(name: string, deadline: Deadline): LookUp {
    this.forget(name);
    const parameter = this.waitFor([name], deadline).then(([info]) => {
      if (info !== undefined) return info;
      throw new PserverError("INTERNAL", `${quoteName(name)}: waited for, but not found`);
    });
    const lookUp = { parameter, deadline };
    this.#lookUps.set(name, lookUp);
    const done = (): boolean => this.#lookUps.delete(name);
    parameter.then(done, done);
    return lookUp;
  }

  /** Asks for the state of the job and parameters: those named, or a page in the order of names. */
  async status(request: StatusRequest, deadline: Deadline): Promise<StatusReply> {
    const reply = parseStatusReply(await this.#session.request("status", { ...request }, deadline));
    reply.at.forEach((position, shard) => {
      this.#positions.await(shard, position);
    });
    return reply;
  }

  /** Returns the parameters if all of them are known, else undefined. */
  #known(names: readonly string[]): readonly ParameterInfo[] | undefined {
    const prepared = this.#prepared.find((set) => isSameList(set.names, names));
    if (prepared !== undefined) return prepared.infos;
    const added = this.#prepare(names);
    if (added === undefined) return undefined;
    this.#prepared.unshift(added);
    if (this.#prepared.length > PREPARED_SETS_MAX) this.#prepared.pop();
    return added.infos;
  }

  #prepare(names: readonly string[]): PreparedSet | undefined {
    const infos: ParameterInfo[] = [];
    for (const name of names) {
      const info = this.#ready.get(name);
      if (info === undefined) return undefined;
      infos.push(info);
    }
    return { names: [...names], infos };
  }

  /** Looks up what is not known; returns the error of the first name that is not ready. */
  async #fill(names: readonly string[], deadline: Deadline): Promise<PserverError | undefined> {
    const missing = [...new Set(names)].filter((name) => !this.#ready.has(name));
    for (const name of missing) escapeName(name);
    let problem: PserverError | undefined;
    const countMax = parametersPerRequest(this.#payloadBytesMax());
    for (let start = 0; start < missing.length; start += countMax) {
      const part = missing.slice(start, start + countMax);
      const reply = await this.status({ names: part }, deadline);
      part.forEach((name, i) => {
        const info = reply.parameters[i] ?? null;
        if (info?.ready) this.#ready.set(name, info);
        else problem ??= notReady(name, info, reply);
      });
    }
    return problem;
  }
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function notReady(
  name: string,
  info: ParameterInfo | null,
  { state, by }: StatusReply,
): PserverError {
  const details = { parameter: name, state, by };
  const quoted = quoteName(name);
  if (info !== null) {
    const text = `${quoted} is declared, but its initialization has not been finished`;
    return new PserverError("NOT_INITIALIZED", text, details);
  }
  if (state === "ready") {
    return new PserverError("UNKNOWN_PARAMETER", `no parameter is called ${quoted}`, details);
  }
  const doing =
    state === "initializing" ? `is being initialized by ${quoteName(by)}` : `is ${state}`;
  const advice = "one trainer initializes it, with beginInit, initParam and finishInit";
  return new PserverError("NOT_INITIALIZED", `${quoted}: the job ${doing}; ${advice}`, details);
}

/**
 * Remembers the version of each block that this trainer read last, which its next gradient is made from.
 * A gradient names it, so that the history tells how old the values were, whether or not the
 * parameter's learning rate depends on it.
 */
export class SeenVersions {
  /** By the number of the block, which is another one after each initialization. */
  readonly #versions = new Map<number, number>();

  /** Notes the version of a block that was read, by its number. */
  note(number: number, version: number): void {
    this.#versions.set(number, version);
  }

  /** Forgets all versions, after a shard has undone some of them. */
  clear(): void {
    this.#versions.clear();
  }

  /** Returns the version of a block last read; undefined if there is none. */
  get(number: number): number | undefined {
    return this.#versions.get(number);
  }
}
