import { type Fields, PserverError, quoteName } from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import { mapConcurrently } from "../concurrent.ts";
import { readJob } from "./job-record.ts";
import { PARAMETER_KEYS, parameterOfKey } from "./keys.ts";
import { type Lifecycle, UNINITIALIZED } from "./machine.ts";
import { readParameter } from "./parameter-change.ts";
import { type Parameter, standing } from "./parameter-record.ts";
import type { Surroundings } from "./settings.ts";
import { shardBytes } from "./shard-bytes.ts";

/** How long what was read is taken to be what others have declared. */
const LOOK_MS = 1_000;

/** What a job or a trainer holds by declaration. */
interface Holding {
  readonly parameters: number;
  /** Bytes of values and slots. */
  readonly heldBytes: number;
}

/** What one parameter adds to that. */
interface Entry extends Holding {
  readonly trainer: string;
  /** Whether its declaration can change any more without this host's doing. */
  readonly isSettled: boolean;
}

const NOTHING: Holding = { parameters: 0, heldBytes: 0 };

/**
 * What is declared in a job, for its quotas: exactly what was declared through this host, and what was
 * declared through others up to a second ago. Names are never forgotten, so they count whatever became
 * of them; bytes count from the declaration until the initialization ends without a finish.
 */
export class DeclaredLedger {
  readonly #clock: Clock;
  readonly #entries: Map<string, Entry> = new Map();
  #trainers: Map<string, Holding> = new Map();
  #total: Holding = NOTHING;
  #job: Lifecycle = UNINITIALIZED;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #look: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Reads what others may have declared, unless that was done a moment ago. */
  look(around: Surroundings): Promise<void> {
    if (this.#clock.now() - this.#lookedAt < LOOK_MS) return Promise.resolve();
    this.#look ??= this.#read(around).finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  /**
   * Passes if a trainer may declare these parameters beside what is there.
   * @throws QUOTA naming the quota that it would go beyond.
   */
  require(around: Surroundings, trainer: string, adding: readonly Parameter[]): void {
    const { job, quotas } = around.job;
    let total = this.#total;
    let own = this.#trainers.get(trainer) ?? NOTHING;
    for (const parameter of adding) {
      const before = this.#entries.get(parameter.declaration.name);
      const after = { parameters: 1, heldBytes: heldBytes(around, parameter) };
      total = sum(total, after, before);
      own = sum(own, after, before?.trainer === trainer ? before : undefined);
    }
    const who = `trainer ${quoteName(trainer)}`;
    check(`job ${job}`, "parameters", quotas.parametersMax, total.parameters);
    check(`job ${job}`, "bytes", quotas.heldBytesMax, total.heldBytes);
    check(who, "parameters", quotas.trainerParametersMax, own.parameters);
    check(who, "bytes", quotas.trainerHeldBytesMax, own.heldBytes);
  }

  /** Takes note of parameters as they have just been written or read. */
  note(around: Surroundings, parameters: readonly Parameter[]): void {
    for (const parameter of parameters) {
      const { name } = parameter.declaration;
      this.#replace(this.#entries.get(name), -1);
      const entry = this.#entryOf(around, parameter);
      this.#replace(entry, 1);
      this.#entries.set(name, entry);
    }
  }

  /** What is declared, in all and by each trainer, beside the quotas. */
  show({ job: { quotas } }: Surroundings): Fields {
    const trainers = [...this.#trainers].filter(([, { parameters }]) => parameters > 0);
    return {
      ...this.#total,
      quotas,
      trainers: trainers
        .map(([trainer, holding]) => ({ trainer, ...holding }))
        .sort((a, b) => (a.trainer < b.trainer ? -1 : 1)),
    };
  }

  async #read(around: Surroundings): Promise<void> {
    const askedAt = this.#clock.now();
    const [job, keys] = await Promise.all([readJob(around), around.records.keys(PARAMETER_KEYS)]);
    if (job.state !== this.#job.state || job.context.epoch !== this.#job.context.epoch) {
      // What counts, and what can change, follows from where the job stands.
      this.#entries.clear();
      this.#trainers.clear();
      this.#total = NOTHING;
    }
    this.#job = job;
    const open = keys.map(parameterOfKey).filter((name) => !this.#entries.get(name)?.isSettled);
    const read = await mapConcurrently(open, (name) => readParameter(around, name));
    this.note(
      around,
      read.filter((parameter) => parameter !== undefined),
    );
    this.#lookedAt = askedAt;
  }

  #entryOf(around: Surroundings, parameter: Parameter): Entry {
    const { jobEpoch, lifecycle } = parameter;
    const isAlive = standing(parameter, this.#job) !== "uninitialized";
    const isOfJob = jobEpoch !== 0 && jobEpoch === this.#job.context.epoch;
    return {
      parameters: 1,
      heldBytes: isAlive ? heldBytes(around, parameter) : 0,
      trainer: lifecycle.context.trainer,
      isSettled: lifecycle.state === "ready" || isOfJob,
    };
  }

  /** Adds a parameter to what its trainer and the job hold, or takes it away. */
  #replace(entry: Entry | undefined, sign: 1 | -1): void {
    if (entry === undefined) return;
    const [after, before] = sign === 1 ? [entry, undefined] : [NOTHING, entry];
    this.#total = sum(this.#total, after, before);
    const own = this.#trainers.get(entry.trainer) ?? NOTHING;
    this.#trainers.set(entry.trainer, sum(own, after, before));
  }
}

function sum(held: Holding, added: Holding, gone: Holding = NOTHING): Holding {
  return {
    parameters: held.parameters + added.parameters - gone.parameters,
    heldBytes: held.heldBytes + added.heldBytes - gone.heldBytes,
  };
}

function heldBytes({ job }: Surroundings, parameter: Parameter): number {
  return shardBytes([parameter], job).reduce((total, bytes) => total + bytes, 0);
}

function check(who: string, what: string, expected: number, received: number): void {
  if (received <= expected) return;
  throw new PserverError(
    "QUOTA",
    `${who}: expected at most ${expected} ${what} to be declared; received ${received}`,
    { expected, received },
  );
}
