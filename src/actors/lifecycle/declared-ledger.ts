import { type Fields, PserverError, quoteName } from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { jobRecord } from "./lifecycle-record.ts";
import { type Lifecycle, UNINITIALIZED } from "./machine.ts";
import type { JobSettings } from "./owners.ts";
import { effectiveState, type Parameter, shardBytes } from "./parameter.ts";
import { ParameterCatalog } from "./parameter-catalog.ts";

/** How long the parameters that were read are counted before others' are read again. */
const FRESH_MS = 1_000;

/** Dependencies of {@link DeclaredLedger}. */
export interface DeclaredLedgerDeps {
  readonly bucket: KvBucket;
  readonly job: JobSettings;
  readonly clock: Clock;
}

/** What a job or a trainer has declared. */
interface Usage {
  readonly parameters: number;
  /** Bytes of values and slots. */
  readonly heldBytes: number;
}

/** What one parameter adds to that. */
interface Entry extends Usage {
  readonly trainer: string;
}

const NOTHING: Usage = { parameters: 0, heldBytes: 0 };

/**
 * The declarations of a job, counted for its quotas: exactly those made through this host, and those made
 * through others as of at most a second ago. Names are never forgotten, so they always count; bytes count
 * from the declaration until the initialization ends without a finish.
 */
export class DeclaredLedger {
  readonly #deps: DeclaredLedgerDeps;
  /** The parameters that are counted. */
  readonly catalog: ParameterCatalog;
  readonly #entries: Map<string, Entry> = new Map();
  #trainers: Map<string, Usage> = new Map();
  #total: Usage = NOTHING;
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
   * Checks that a trainer may declare these parameters besides those that are declared.
   * @throws QUOTA naming the quota that would be exceeded.
   */
  require(trainer: string, adding: readonly Parameter[]): void {
    const { job, quotas } = this.#deps.job;
    let total = this.#total;
    let own = this.#trainers.get(trainer) ?? NOTHING;
    for (const parameter of adding) {
      const before = this.#entries.get(parameter.declaration.name);
      const after = { parameters: 1, heldBytes: this.#heldBytes(parameter) };
      total = sum(total, after, before);
      own = sum(own, after, before?.trainer === trainer ? before : undefined);
    }
    const who = `trainer ${quoteName(trainer)}`;
    check(`job ${job}`, "parameters", quotas.parametersMax, total.parameters);
    check(`job ${job}`, "bytes", quotas.heldBytesMax, total.heldBytes);
    check(who, "parameters", quotas.trainerParametersMax, own.parameters);
    check(who, "bytes", quotas.trainerHeldBytesMax, own.heldBytes);
  }

  /** What is declared, in all and by each trainer, and the quotas. */
  show(): Fields {
    const trainers = [...this.#trainers].filter(([, { parameters }]) => parameters > 0);
    return {
      ...this.#total,
      quotas: this.#deps.job.quotas,
      trainers: trainers
        .map(([trainer, usage]) => ({ trainer, ...usage }))
        .sort((a, b) => (a.trainer < b.trainer ? -1 : 1)),
    };
  }

  async #read(): Promise<void> {
    const { bucket, clock } = this.#deps;
    const startedAtMs = clock.now();
    const [job] = await Promise.all([jobRecord.read({ bucket }), this.catalog.refresh()]);
    const before = this.#job;
    this.#job = job;
    if (hasChanged(before, job)) {
      // The job's state decides which bytes count; a rewind changes that of any parameter.
      this.#entries.clear();
      this.#trainers.clear();
      this.#total = NOTHING;
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
    return {
      parameters: 1,
      heldBytes: isAlive ? this.#heldBytes(parameter) : 0,
      trainer: parameter.lifecycle.context.trainer,
    };
  }

  #heldBytes(parameter: Parameter): number {
    return shardBytes([parameter], this.#deps.job).reduce((total, bytes) => total + bytes, 0);
  }

  /** Adds an entry to the usage of its trainer and of the job, or subtracts it. */
  #replace(entry: Entry | undefined, sign: 1 | -1): void {
    if (entry === undefined) return;
    const [after, before] = sign === 1 ? [entry, undefined] : [NOTHING, entry];
    this.#total = sum(this.#total, after, before);
    const own = this.#trainers.get(entry.trainer) ?? NOTHING;
    this.#trainers.set(entry.trainer, sum(own, after, before));
  }
}

function hasChanged({ state, context }: Lifecycle, now: Lifecycle): boolean {
  const { epoch, sealed, revised } = now.context;
  if (now.state !== state || epoch !== context.epoch) return true;
  return sealed !== context.sealed || revised !== context.revised;
}

function sum(held: Usage, added: Usage, gone: Usage = NOTHING): Usage {
  return {
    parameters: held.parameters + added.parameters - gone.parameters,
    heldBytes: held.heldBytes + added.heldBytes - gone.heldBytes,
  };
}

function check(who: string, what: string, expected: number, received: number): void {
  if (received <= expected) return;
  throw new PserverError(
    "QUOTA",
    `${who}: expected at most ${expected} ${what} to be declared; received ${received}`,
    { expected, received },
  );
}
