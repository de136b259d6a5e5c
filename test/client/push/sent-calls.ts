/** Calls that change parameters, described for all languages, and the records that this client sends for them. */

import { Deadline } from "../../../src/client/calls/calls.ts";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { addTensor, type Gradient } from "../../../src/client/push/block-updates.ts";
import { type ContributionWork, Fragments } from "../../../src/client/push/fragments.ts";
import { RoundingErrors } from "../../../src/client/push/rounding-errors.ts";
import { collectorFor, Updates, type UpdatesDeps } from "../../../src/client/push/updates.ts";
import {
  allocateData,
  type Dtype,
  type Encoding,
  isHalf,
  JobSubjects,
  type ParameterInfo,
  type Synchronization,
  type Tensor,
  type TensorData,
  toHalfFloats,
} from "../../../src/protocol/index.ts";

/** A job that calls are made in, as its hosts tell it. */
export interface CallJob {
  readonly synchronization: Synchronization;
  /** The largest message that the broker takes. */
  readonly payloadBytes: number;
  readonly parameters: readonly ParameterInfo[];
  /** Versions of blocks that the trainer has read. */
  readonly seen: readonly {
    readonly name: string;
    readonly block: number;
    readonly version: number;
  }[];
}

/** Elements for a parameter, in its type, and, for a gradient of rows, which. */
export interface GivenValues {
  readonly name: string;
  readonly data: TensorData;
  readonly rows?: readonly number[];
}

/** value = alpha · value + beta · data. */
interface MixCall extends GivenValues {
  readonly alpha: number;
  readonly beta: number;
  readonly encoding?: Encoding;
}

/** One call, by the name of its method. */
export type SentCall =
  | {
      readonly kind: "sendGrads";
      readonly learningRate?: number;
      readonly encoding?: Encoding;
      readonly errorFeedback?: boolean;
      readonly values: readonly GivenValues[];
    }
  | { readonly kind: "setParams"; readonly values: readonly GivenValues[] }
  | ({ readonly kind: "pushFull" } & MixCall)
  | ({ readonly kind: "pushAsPart"; readonly indices: readonly (readonly number[])[] } & MixCall)
  | ({ readonly kind: "create" } & GivenValues)
  | ({
      readonly kind: "contribute";
      readonly fragment: string;
      readonly values: readonly GivenValues[];
    } & ContributionWork);

/** A record as the broker gets it. */
export interface SentRecord {
  readonly subject: string;
  readonly shard: number;
  readonly bytes: Uint8Array;
}

const JOB = "mnist";
export const TRAINER = "t";
export const SESSION = 41;
const REPLY = `_INBOX_${JOB}.${TRAINER}.life.applied`;

/**
 * The records of calls made one after the other in one session, in which no outcome is known; by shard. What rounding
 * leaves out of the gradients of one call is added to those of the next.
 */
export async function recordsOf(
  job: CallJob,
  calls: readonly SentCall[],
): Promise<readonly SentRecord[]> {
  const numbers = new Map<number, number>();
  const errors = new RoundingErrors();
  const records: SentRecord[] = [];
  for (const call of calls) {
    for (const source of await sourcesOf(job, call, errors)) {
      const { shard, subject, namesVersion } = source;
      const n = (numbers.get(shard) ?? 0) + 1;
      numbers.set(shard, n);
      const header = { session: SESSION, n, done: 0, reply: REPLY };
      records.push({ shard, subject, bytes: source.draft(header, namesVersion) });
    }
  }
  return records.sort((a, b) => a.shard - b.shard);
}

/** What a call hands to the sender. */
async function sourcesOf(
  job: CallJob,
  call: SentCall,
  errors: RoundingErrors,
): Promise<readonly UpdateSource[]> {
  let sent: readonly UpdateSource[] = [];
  const deps = depsOf(job, errors, (sources) => {
    sent = sources;
  });
  if (call.kind === "create") {
    const collector = collectorFor(deps, { verb: "init" });
    addTensor(collector, parameterOf(job, call.name), call.data);
    return collector.finish();
  }
  const deadline = Deadline.start(call.kind);
  try {
    if (call.kind === "contribute") await contribute(deps, job, call, deadline);
    else await make(new Updates(deps), job, call, deadline);
  } finally {
    deadline.dispose();
  }
  return sent;
}

async function make(
  updates: Updates,
  job: CallJob,
  call: Exclude<SentCall, { kind: "create" | "contribute" }>,
  deadline: Deadline,
): Promise<void> {
  const mode = { ack: "stored" as const };
  if (call.kind === "sendGrads") {
    const { learningRate, encoding, errorFeedback = true, values } = call;
    const rate = learningRate === undefined ? {} : { learningRate };
    await updates.sendGrads(new Map(values.map((given) => toGradient(job, given))), deadline, {
      ...{ ...mode, encoding, errorFeedback, endStep: false },
      ...rate,
    });
  } else if (call.kind === "setParams") {
    await updates.setParams(
      new Map(call.values.map((given) => [given.name, tensorOf(job, given)])),
      deadline,
      mode,
    );
  } else {
    const { name, encoding } = call;
    if (call.kind === "pushFull") {
      await updates.pushFull(name, tensorOf(job, call), call, deadline, { ...mode, encoding });
    } else {
      const shape = call.indices.map((list) => list.length);
      const part = { name, tensor: tensorOf(job, call, shape), indices: call.indices };
      await updates.pushAsPart(part, call, deadline, { ...mode, encoding });
    }
  }
}

async function contribute(
  deps: UpdatesDeps,
  job: CallJob,
  call: Extract<SentCall, { kind: "contribute" }>,
  deadline: Deadline,
): Promise<void> {
  const shards = parameterOf(job, call.values[0]?.name ?? "").layout.shards;
  const session = { number: SESSION, shards, request: async () => undefined };
  type Deps = ConstructorParameters<typeof Fragments>[0];
  const fragments = new Fragments({ ...deps, session } as unknown as Deps);
  const tensors = new Map(call.values.map((given) => [given.name, tensorOf(job, given)]));
  await fragments.contribute(call.fragment, tensors, call, deadline);
}

function toGradient(job: CallJob, given: GivenValues): readonly [string, Gradient] {
  const { name, rows } = given;
  if (rows === undefined) return [name, tensorOf(job, given)];
  const [, ...rowShape] = parameterOf(job, name).shape;
  return [name, { rows, values: tensorOf(job, given, [rows.length, ...rowShape]) }];
}

/** Elements as a tensor of the parameter's type, by default of all its elements. */
function tensorOf(job: CallJob, { name, data }: GivenValues, shape?: readonly number[]): Tensor {
  const info = parameterOf(job, name);
  return { dtype: info.dtype, shape: shape ?? info.shape, data };
}

/** The parameter of a name. */
export function parameterOf({ parameters }: CallJob, name: string): ParameterInfo {
  const info = parameters.find((each) => each.name === name);
  if (info === undefined) throw new Error(`no parameter ${name}`);
  return info;
}

function depsOf(
  job: CallJob,
  errors: RoundingErrors,
  send: (sources: readonly UpdateSource[]) => void,
): UpdatesDeps {
  const { parameters, synchronization, payloadBytes } = job;
  const infos = new Map(parameters.map((info) => [info.name, info]));
  const seen = new SeenVersions();
  for (const { name, block, version } of job.seen) {
    const info = infos.get(name);
    if (info !== undefined) seen.note(info.firstNumber + block, version);
  }
  const step = synchronization.mode === "sync" ? 1 : undefined;
  const fakes = {
    sender: {
      send: async (sources: readonly UpdateSource[]) => {
        send(sources);
        return { late: 0, version: 1 };
      },
    },
    parameters: {
      require: async (names: readonly string[]) => names.map((name) => infos.get(name)),
    },
    steps: {
      gradients: (_what: unknown, _deadline: unknown, sendIn: (place: object) => unknown) =>
        sendIn({ step, countsLate: false }),
    },
    session: { synchronization },
  } as unknown as Pick<UpdatesDeps, "sender" | "parameters" | "steps" | "session">;
  const subjects = new JobSubjects(JOB);
  const own = { subjects, trainer: TRAINER, seen, errors };
  return { ...fakes, ...own, payloadBytesMax: () => payloadBytes };
}

/** Elements of a type from a function of their place. */
export function elementsOf(dtype: Dtype, count: number, value: (i: number) => number): TensorData {
  if (isHalf(dtype)) {
    return toHalfFloats(
      dtype,
      Float32Array.from({ length: count }, (_, i) => value(i)),
    );
  }
  const data = allocateData(dtype, count);
  for (let i = 0; i < count; i++) {
    const element = value(i);
    if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
      data[i] = BigInt(Math.trunc(element * 1_000));
    } else {
      data[i] = element;
    }
  }
  return data;
}

/** The elements that a call needs for all of a parameter. */
export function valuesOf(
  { dtype, layout }: ParameterInfo,
  value: (i: number) => number,
): TensorData {
  return elementsOf(dtype, layout.elements, value);
}
