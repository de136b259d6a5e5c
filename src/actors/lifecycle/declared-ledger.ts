import {
  type Fields,
  type GrantedParameter,
  HEADER_BYTES_MAX,
  type HostRecord,
  PserverError,
  packValue,
  quoteName,
  shardsOfBlocks,
} from "../../protocol/index.ts";
import { type Clock, mapConcurrently } from "../concurrent.ts";
import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { configBytesOf, type DeclaredUsage } from "../job/storage-plan.ts";
import type { KvBucket } from "../journal/kv-bucket.ts";
import { PARAMETER_KEYS, parameterOfKey } from "./lock.ts";
import { jobEntry, type Lifecycle, type LifecycleContext, UNINITIALIZED } from "./machine.ts";
import { effectiveState, type Parameter, parseParameterEntry, shardBytes } from "./parameter.ts";

/** Called with a parameter whenever the catalog gets a newer entry of it. */
type OnParameter = (parameter: Parameter) => void;

/**
 * The parameters of a job as this host knows them: as it has written them, and as others had when it last read the
 * bucket. They may be stale. Decide on one only if a later compare-and-swap fails on stale data, or if it is one that
 * never changes.
 *
 * Memory: about 1 KB for each name that was ever declared. `Quotas.parametersMax` bounds their number.
 */
export class ParameterCatalog {
  readonly #bucket: Pick<KvBucket, "changes">;
  readonly #onParameter: OnParameter;
  readonly #parameters: Map<string, Parameter> = new Map();
  /** In order of code units; undefined after a name was added. */
  #names: readonly string[] | undefined;
  /** What the job's entry said when {@link follow} last read the parameters. */
  #followed: Pick<LifecycleContext, "sealed" | "revised"> = UNINITIALIZED.context;
  /** Every entry up to this revision is known. */
  #readUpTo = 0;
  /** Settles when the reading that is under way ends. */
  #reading: Promise<void> = Promise.resolve();
  /** A reading that has not begun. */
  #next: Promise<void> | undefined;

  constructor(bucket: Pick<KvBucket, "changes">, onParameter: OnParameter) {
    this.#bucket = bucket;
    this.#onParameter = onParameter;
  }

  /** The parameter of this name; undefined if none is known. */
  get(name: string): Parameter | undefined {
    return this.#parameters.get(name);
  }

  /** Every known parameter, in no order. */
  all(): Parameter[] {
    return [...this.#parameters.values()];
  }

  /** Up to `limit` known parameters whose names follow `after`, in order of code units, and whether more follow. */
  page(after: string, limit: number): { parameters: Parameter[]; more: boolean } {
    this.#names ??= [...this.#parameters.keys()].sort();
    const first = placeAfter(this.#names, after);
    const parameters = this.#names
      .slice(first, first + limit)
      .map((name) => this.#parameters.get(name))
      .filter((parameter) => parameter !== undefined);
    return { parameters, more: first + limit < this.#names.length };
  }

  /** Keeps parameters that were just written or read, unless a newer entry is known. */
  note(parameters: readonly Parameter[]): void {
    for (const parameter of parameters) {
      const { name } = parameter.declaration;
      const known = this.#parameters.get(name);
      if (known !== undefined && known.revision >= parameter.revision) continue;
      if (known === undefined) this.#names = undefined;
      this.#parameters.set(name, parameter);
      this.#onParameter(parameter);
    }
  }

  /**
   * Refreshes only if the job was initialized or revised since the last call: nothing else changes a ready parameter.
   * Returns whether it has read.
   */
  async follow({ context }: Lifecycle): Promise<boolean> {
    const { sealed, revised } = this.#followed;
    if (context.sealed === sealed && context.revised === revised) return false;
    await this.refresh();
    this.#followed = context;
    return true;
  }

  /**
   * Reads what others have written before this call. Calls that come while one is reading share the next reading.
   * @throws as `KvBucket` does; the next call then reads on.
   */
  refresh(): Promise<void> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      const read = this.#read();
      this.#reading = read.catch(() => undefined);
      return read;
    });
    return this.#next;
  }

  async #read(): Promise<void> {
    this.#readUpTo = await this.#bucket.changes(PARAMETER_KEYS, this.#readUpTo, (key, entry) => {
      const name = parameterOfKey(key);
      // Most are this host's own entries, which need not be parsed.
      if ((this.#parameters.get(name)?.revision ?? 0) >= entry.revision) return;
      const parameter = parseParameterEntry(entry, name);
      if (parameter !== undefined) this.note([parameter]);
    });
  }
}

/** Returns the index of the first of the sorted names that follows `after`. */
function placeAfter(names: readonly string[], after: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] ?? "") <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Time for which the parameters are counted as they were read last. */
const FRESH_MS = 1_000;

/** Dependencies of {@link DeclaredLedger}. */
interface DeclaredLedgerDeps {
  readonly bucket: KvBucket;
  readonly job: JobSettings;
  readonly clock: Clock;
}

/** What one parameter adds to the usage, and the trainer that declared it. */
interface Entry extends DeclaredUsage {
  readonly trainer: string;
}

const NO_USAGE: DeclaredUsage = { parameters: 0, heldBytes: 0, configBytes: 0 };

/**
 * Counts the declarations of a job for its quotas: exactly those made through this host, and those made through
 * others as of at most a second ago. Names are never forgotten, so they always count. Bytes count from the
 * declaration on, and no longer if the initialization ends without a finish.
 */
export class DeclaredLedger {
  readonly #deps: DeclaredLedgerDeps;
  /** The parameters that are counted. */
  readonly catalog: ParameterCatalog;
  readonly #entries: Map<string, Entry> = new Map();
  #trainers: Map<string, DeclaredUsage> = new Map();
  #total: DeclaredUsage = NO_USAGE;
  #job: Lifecycle = UNINITIALIZED;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(deps: DeclaredLedgerDeps) {
    this.#deps = deps;
    this.catalog = new ParameterCatalog(deps.bucket, (parameter) => this.#count(parameter));
  }

  /** Reads what others may have declared, unless that was done less than a second ago. */
  refresh(): Promise<void> {
    if (this.#deps.clock.now() - this.#readAtMs < FRESH_MS) return Promise.resolve();
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /**
   * Checks that a trainer may declare these parameters in addition to those that are declared. Returns what is declared
   * with them.
   * @throws QUOTA naming the quota that would be exceeded, and the flag that sets it.
   */
  require(trainer: string, adding: readonly Parameter[]): DeclaredUsage {
    const { job, quotas } = this.#deps.job;
    const total = this.totalWith(adding);
    let own = this.#trainers.get(trainer) ?? NO_USAGE;
    for (const parameter of adding) {
      const before = this.#entries.get(parameter.declaration.name);
      own = sum(own, this.#usageOf(parameter), before?.trainer === trainer ? before : undefined);
    }
    const who = `trainer ${quoteName(trainer)}`;
    const { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax } = quotas;
    const all = `job ${job}`;
    check(all, "parameters", parametersMax, total.parameters, "--quota-parameters");
    check(all, "bytes", heldBytesMax, total.heldBytes, "--quota-bytes");
    check(who, "parameters", trainerParametersMax, own.parameters, "--trainer-quota-parameters");
    check(who, "bytes", trainerHeldBytesMax, own.heldBytes, "--trainer-quota-bytes");
    return total;
  }

  /** Returns what is declared in the job, with these parameters, whatever is known of their state. */
  totalWith(parameters: readonly Parameter[]): DeclaredUsage {
    return parameters.reduce((total, parameter) => {
      const before = this.#entries.get(parameter.declaration.name);
      return sum(total, this.#usageOf(parameter), before);
    }, this.#total);
  }

  /** Returns what is declared, in all and by each trainer, and the quotas. */
  show(): Fields {
    const trainers = [...this.#trainers].filter(([, { parameters }]) => parameters > 0);
    const { parameters, heldBytes } = this.#total;
    return {
      ...{ parameters, heldBytes },
      quotas: this.#deps.job.quotas,
      trainers: trainers
        .map(([trainer, own]) => {
          return { trainer, parameters: own.parameters, heldBytes: own.heldBytes };
        })
        .sort((a, b) => (a.trainer < b.trainer ? -1 : 1)),
    };
  }

  async #read(): Promise<void> {
    const { bucket, clock } = this.#deps;
    const startedAtMs = clock.now();
    const [job] = await Promise.all([jobEntry.read({ bucket }), this.catalog.refresh()]);
    const before = this.#job;
    this.#job = job;
    if (hasChanged(before, job)) {
      // The job's state decides which bytes count; a rewind changes the state of any parameter.
      this.#entries.clear();
      this.#trainers.clear();
      this.#total = NO_USAGE;
      for (const parameter of this.catalog.all()) this.#count(parameter);
    }
    this.#readAtMs = startedAtMs;
  }

  #count(parameter: Parameter): void {
    const { name } = parameter.declaration;
    this.#replace(this.#entries.get(name), -1);
    const entry = this.#entryOf(parameter);
    this.#replace(entry, 1);
    this.#entries.set(name, entry);
  }

  #entryOf(parameter: Parameter): Entry {
    const isAlive = effectiveState(parameter, this.#job) !== "uninitialized";
    const { trainer } = parameter.lifecycle.context;
    const usage = this.#usageOf(parameter);
    return { ...usage, heldBytes: isAlive ? usage.heldBytes : 0, trainer };
  }

  #usageOf(parameter: Parameter): DeclaredUsage {
    const bytes = shardBytes([parameter], this.#deps.job);
    return {
      parameters: 1,
      heldBytes: bytes.reduce((total, each) => total + each, 0),
      configBytes: configBytesOf(parameter.declaration.config),
    };
  }

  /** Adds an entry to the usage of its trainer and of the job (`sign` 1), or subtracts it (-1). */
  #replace(entry: Entry | undefined, sign: 1 | -1): void {
    if (entry === undefined) return;
    const [after, before] = sign === 1 ? [entry, undefined] : [NO_USAGE, entry];
    this.#total = sum(this.#total, after, before);
    const own = this.#trainers.get(entry.trainer) ?? NO_USAGE;
    this.#trainers.set(entry.trainer, sum(own, after, before));
  }
}

function hasChanged({ state, context }: Lifecycle, now: Lifecycle): boolean {
  const { epoch, sealed, revised } = now.context;
  if (now.state !== state || epoch !== context.epoch) return true;
  return sealed !== context.sealed || revised !== context.revised;
}

function sum(
  held: DeclaredUsage,
  added: DeclaredUsage,
  gone: DeclaredUsage = NO_USAGE,
): DeclaredUsage {
  return {
    parameters: held.parameters + added.parameters - gone.parameters,
    heldBytes: held.heldBytes + added.heldBytes - gone.heldBytes,
    configBytes: held.configBytes + added.configBytes - gone.configBytes,
  };
}

function check(who: string, what: string, expected: number, received: number, flag: string): void {
  if (received <= expected) return;
  throw new PserverError(
    "QUOTA",
    `${who}: expected at most ${expected} ${what} to be declared; received ${received}. ` +
      `The first host of a job sets the limit with ${flag}`,
    { expected, received, flag },
  );
}

/** Dependencies of {@link announceGranted} and {@link dropOrphans}. */
interface GrantDeps {
  readonly owners: Pick<Owners, "append">;
  readonly maxPayloadBytes: number;
}

/** Bytes of a record besides the parameters that it lists. */
const LIST_BYTES = 16;

/**
 * Tells the journals of the shards concerned that this trainer initializes these parameters, before the trainer
 * itself is told. Each shard gets one record, or as many as the largest message requires. A repeat is harmless, and
 * completes what a host that died has left undone.
 */
export async function announceGranted(
  deps: GrantDeps,
  trainer: string,
  parameters: readonly Parameter[],
): Promise<void> {
  const lists = [...grantedByShard(parameters)].flatMap(([shard, granted]) =>
    splitToFit(granted, deps.maxPayloadBytes - HEADER_BYTES_MAX).map((list) => ({ shard, list })),
  );
  await mapConcurrently(lists, ({ shard, list }) =>
    deps.owners.append(shard, { verb: "declare", trainer, parameters: list }),
  );
}

/**
 * Drops orphans: all blocks of a parameter that nobody initializes, and those blocks of a ready parameter that its
 * present layout does not have. A repeat is harmless.
 */
export async function dropOrphans(
  deps: GrantDeps,
  parameters: readonly Parameter[],
  job: Lifecycle,
): Promise<void> {
  const drops = parameters.flatMap((parameter) => dropsOf(parameter, job));
  await mapConcurrently(drops, ({ shard, record }) => deps.owners.append(shard, record));
}

function grantedByShard(parameters: readonly Parameter[]): Map<number, GrantedParameter[]> {
  const byShard = new Map<number, GrantedParameter[]>();
  for (const { declaration, layout, firstNumber, lifecycle } of parameters) {
    const { epoch } = lifecycle.context;
    const parameter = { ...declaration, epoch, layout, firstNumber };
    for (const shard of shardsOfBlocks(layout, 0, layout.blocks)) {
      const present = byShard.get(shard);
      if (present === undefined) byShard.set(shard, [parameter]);
      else present.push(parameter);
    }
  }
  return byShard;
}

/** Cuts the parameters, in order, into lists of at most `bytesMax` bytes each. */
function splitToFit(
  parameters: readonly GrantedParameter[],
  bytesMax: number,
): GrantedParameter[][] {
  const lists: GrantedParameter[][] = [];
  let bytesLeft = 0;
  for (const parameter of parameters) {
    const { length } = packValue(parameter);
    if (lists.length === 0 || length > bytesLeft) {
      lists.push([]);
      bytesLeft = bytesMax - LIST_BYTES;
    }
    lists.at(-1)?.push(parameter);
    bytesLeft -= length;
  }
  return lists;
}

function dropsOf(parameter: Parameter, job: Lifecycle): { shard: number; record: HostRecord }[] {
  const { declaration, layout, blocksMax, lifecycle } = parameter;
  const isDead = effectiveState(parameter, job) === "uninitialized";
  const { epoch } = lifecycle.context;
  const from = isDead ? 0 : layout.blocks;
  const record: HostRecord = {
    verb: "drop",
    parameter: declaration.name,
    epoch: isDead ? epoch : epoch - 1,
  };
  const holders = shardsOfBlocks(layout, from, blocksMax - from);
  return holders.map((shard) => ({ shard, record }));
}
