import { Deadline, type NamedTensor } from "../../../src/client/calls/calls.ts";
import { Parameters, SeenVersions } from "../../../src/client/calls/parameters.ts";
import { LinkWindow } from "../../../src/client/core/link-window.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import type { Session } from "../../../src/client/io/session.ts";
import { BlockReader } from "../../../src/client/pull/block-reader.ts";
import { PulledTensor, Puller } from "../../../src/client/pull/puller.ts";
import { Requests } from "../../../src/client/wire/wire.ts";
import { decodeMessage, encodeMessage, readCrc } from "../../../src/protocol/codec.ts";
import { allocateData, type Dtype, type Encoding } from "../../../src/protocol/dtypes.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { elementCount, hashName, toConfig } from "../../../src/protocol/index.ts";
import { IN_FLIGHT_BYTES_MAX } from "../../../src/protocol/limits.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";
import { JobSubjects } from "../../../src/protocol/subjects.ts";
import { toHex } from "../../protocol/vector-json.ts";
import { Random } from "../../simulation/random.ts";
import { FakeWire } from "../../support/fake-wire.ts";

const SHARDS = 4;
const EPOCH = 2;
const TRAINER = "t";
/** The generation of every journal. */
const GENERATION = 3;

/** What is read of a job with these parameters. */
interface Reading {
  readonly what: string;
  readonly parameters: readonly ParameterInfo[];
  /** Whole parameters; of a part, the only one. */
  readonly names: readonly string[];
  /** The elements of a part; absent for whole parameters. */
  readonly indices?: readonly (readonly number[])[];
  readonly encoding?: Encoding | undefined;
  /** For each name the generation and the versions of its blocks that the reader has. */
  readonly known?: readonly (readonly [generation: number, ...versions: number[]])[];
}

/** Requests of a client that reads: bytes, checksum and subject of each tell it from all others. */
export async function readCases(): Promise<Readonly<Record<string, readonly object[]>>> {
  const readings = [...chosen(), ...Array.from({ length: 60 }, (_, seed) => byChance(seed))];
  return { reads: await Promise.all(readings.map(toCase)) };
}

async function toCase(reading: Reading): Promise<object> {
  const { what, names, indices, encoding, known } = reading;
  return {
    ...{ what, names, indices, encoding, known },
    status: toHex(statusOf(reading)),
    requests: await requestsOf(reading),
  };
}

/** The reply to a request for the state of the job and of the parameters read, each once. */
function statusOf({ parameters }: Reading): Uint8Array {
  const at = Array.from({ length: SHARDS }, (_, shard) => ({
    generation: GENERATION,
    seq: shard + 1,
  }));
  const job = { state: "ready", epoch: EPOCH, by: TRAINER, shards: SHARDS };
  return encodeMessage({ ...job, parameters, more: false, at });
}

/** A link so fast that everything is asked for at one time. */
function fastLink(): LinkWindow {
  const link = new LinkWindow(IN_FLIGHT_BYTES_MAX);
  link.note(IN_FLIGHT_BYTES_MAX, 1, performance.now());
  return link;
}

/** What the client publishes for a reading, before any answer. */
async function requestsOf(reading: Reading): Promise<object[]> {
  const wire = new FakeWire();
  const positions = new Positions({ journalReplaced: () => undefined });
  const { fields } = decodeMessage(statusOf(reading));
  const session = { request: async () => fields } as unknown as Session;
  const parameters = new Parameters(session, positions, () => wire.payloadBytesMax);
  const reader = new BlockReader({
    ...{ parameters, positions, trainer: TRAINER, seen: new SeenVersions() },
    subjects: new JobSubjects("mnist"),
    requests: Requests.open(wire, true),
    payloadBytesMax: () => wire.payloadBytesMax,
    receivedBytes: () => wire.receivedBytes,
    link: fastLink(),
    steps: { readStep: undefined, noteClosed: () => undefined, lostPlace: () => undefined },
  });
  const deadline = Deadline.start("read", { timeoutMs: 1e6 });
  const done = read(new Puller(parameters, reader), reading, deadline);
  await new Promise((resolve) => setImmediate(resolve));
  // Nothing may be left that repeats the requests: the timers of later files would count it.
  deadline.end(new PserverError("CLOSED", "what is asked for has been seen"));
  await done.catch(() => undefined);
  return wire.published.map(({ subject, bytes }) => {
    return { subject, bytes: bytes.length, crc: readCrc(bytes) };
  });
}

function read(puller: Puller, reading: Reading, deadline: Deadline): Promise<unknown> {
  const { names, indices, encoding } = reading;
  if (indices !== undefined) {
    return puller.pullPart(names[0] as string, indices, deadline, { encoding });
  }
  return puller.pull(names, deadline, { encoding, known: knownTensors(reading) });
}

function knownTensors({ names, parameters, encoding, known = [] }: Reading): NamedTensor[] {
  return known.map(([generation, ...versions], i) => {
    const info = parameters.find(({ name }) => name === names[i]) as ParameterInfo;
    const { name, dtype, shape, layout, epoch } = info;
    const data = allocateData(dtype, layout.elements);
    const blocks = versions.map((version) => ({ version, generation }));
    return new PulledTensor({ name, dtype, shape, data }, { epoch, encoding, blocks });
  });
}

function parameter(
  name: string,
  shape: readonly number[],
  more: { blockElements?: number; dtype?: Dtype; firstShard?: number; shards?: number } = {},
): ParameterInfo {
  const elements = elementCount(shape);
  const { blockElements = elements, dtype = "float32", firstShard = 1, shards = SHARDS } = more;
  const blocks = Math.ceil(elements / blockElements);
  const layout = { elements, blockElements, blocks, firstShard, shards };
  return {
    name,
    dtype,
    shape,
    config: toConfig(),
    epoch: EPOCH,
    ready: true,
    layout,
    firstNumber: 1 + (hashName(name) % 2 ** 31),
  };
}

function numbers(count: number, of: (i: number) => number = (i) => i): number[] {
  return Array.from({ length: count }, (_, i) => of(i));
}

/** A reading of each kind, and one at each limit. */
function chosen(): Reading[] {
  const small = ["a", "b", "ü:/"].map((name) => parameter(name, [3]));
  const ones = parameter("ones", [9000], { blockElements: 1, shards: 1, firstShard: 0 });
  const wide = parameter("wide", [200_000, 2], { blockElements: 160_000 });
  const table = parameter("table", [4000, 3], { blockElements: 300 });
  const flat = parameter("flat", [20, 100], { blockElements: 70 });
  const kilobytes = numbers(9).map((i) => parameter(`k${i}`, [50_000], { firstShard: i % 2 }));
  const large = parameter("large", [65_536], { firstShard: 1 });
  const whole = (
    what: string,
    parameters: ParameterInfo[],
    more: Partial<Reading> = {},
  ): Reading => {
    return { what, parameters, names: parameters.map(({ name }) => name), ...more };
  };
  return [
    whole("one block goes alone", small.slice(0, 1)),
    whole("small ones of a shard go together", small),
    whole("a large one goes alone, between small ones", [
      small[0],
      large,
      small[1],
    ] as ParameterInfo[]),
    whole("as many as fit into a mebibyte go together", kilobytes),
    whole("at most 4,096 blocks go together", [ones]),
    whole("encoded", small, { encoding: "bfloat16" }),
    whole("in int8, whose scales count", kilobytes, { encoding: "int8" }),
    whole("in e3m0", [small[0], large] as ParameterInfo[], { encoding: "e3m0" }),
    whole("of what is known only the changes", [small[0], large] as ParameterInfo[], {
      known: [
        [GENERATION, 7],
        [GENERATION, 2 ** 33],
      ],
    }),
    whole("what is known of an older journal says nothing", small.slice(0, 2), {
      known: [
        [GENERATION - 1, 7],
        [GENERATION, 5],
      ],
    }),
    whole("rows", [table], { indices: [numbers(50, (i) => (i * 79) % 4000), numbers(3)] }),
    whole("columns of rows", [table], { indices: [numbers(50, (i) => i * 5), [2, 0]] }),
    whole("rows of two shards", [wide], {
      indices: [
        [79_999, 80_000, 5, 5],
        [0, 1],
      ],
    }),
    whole("elements of a parameter that is cut within rows", [flat], {
      indices: [
        [1, 3, -1],
        [0, 99],
      ],
    }),
    whole("a part that is whole blocks", [table], { indices: [numbers(200), numbers(3)] }),
  ];
}

function byChance(seed: number): Reading {
  const random = new Random(seed + 1);
  const what = `by chance, ${seed}`;
  if (random.chance(0.4)) return partByChance(random, what);
  const parameters = numbers(1 + random.below(6)).map((i) => parameterByChance(random, `p${i}`));
  const names = parameters.map(({ name }) => name);
  const isFloat = parameters.every(({ dtype }) => dtype === "float32");
  const encoding = isFloat && random.chance(0.3) ? ("float16" as const) : undefined;
  const known = parameters.map(
    ({ layout }) =>
      [
        GENERATION - random.below(2),
        ...numbers(layout.blocks, () => 1 + random.below(300)),
      ] as const,
  );
  const isKnown = random.chance(0.4);
  return { ...{ what, parameters, names, encoding }, ...(isKnown ? { known } : {}) };
}

function partByChance(random: Random, what: string): Reading {
  const one = parameterByChance(random, "w");
  const indices = one.shape.map((size) =>
    numbers(1 + random.below(Math.min(size, 40)), () => random.below(2 * size) - size),
  );
  return { what, parameters: [one], names: ["w"], indices };
}

/** Cut between rows or within them, into few blocks or many. */
function parameterByChance(random: Random, name: string): ParameterInfo {
  const shape = numbers(random.below(4), () => 1 + random.below(40));
  const dtype = random.pick<Dtype>(["float32", "float32", "float32", "int64", "uint32"]) as Dtype;
  const elements = elementCount(shape);
  const rowElements = elements / (shape[0] ?? 1);
  const rows = rowElements * (1 + random.below(shape[0] ?? 1));
  const blockElements = random.chance(0.5) ? rows : Math.ceil(elements / (1 + random.below(30)));
  return parameter(name, shape, { blockElements, dtype, firstShard: random.below(SHARDS) });
}
