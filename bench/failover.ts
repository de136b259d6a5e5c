import { setTimeout as delay } from "node:timers/promises";
import { bucketStream, JobSubjects } from "../src/protocol/index.ts";
import { startTestBroker, type TestBroker } from "../test/support/broker.ts";
import { TestCluster } from "../test/support/cluster.ts";
import { signalProcess } from "../test/support/signals.ts";
import { machineMs } from "./agent.ts";
import { AgentProcess } from "./agent-process.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import type { BenchHost } from "./programs/host.ts";
import type { Pusher } from "./programs/pusher.ts";
import { RawPublisher } from "./raw-publisher.ts";
import { type Spread, spread } from "./statistics.ts";

/** How long pushes wait after a fault, over several rounds. */
export interface FailoverTime {
  readonly name: string;
  /** The longest time without an acknowledged push, of any trainer to any shard. */
  readonly stallMs: Spread;
  /** The same of plain messages to as many streams of the same brokers. */
  readonly rawStallMs?: Spread;
  /** What the median is to stay below. */
  readonly targetMs: number;
  /** Codes of pushes that failed, in all rounds. */
  readonly errors: readonly string[];
}

/** Options of this part, and where its progress is told. */
type FailoverOptions = BenchOptions & { readonly log: (line: string) => void };

const JOB = "failover";
const SHARDS = 4;
const LEASE_MS = 5_000;
const BROKERS = 3;
/** Ids among which placement divides the shards. */
const HOSTS = ["a", "b"];

/** How long a broker is paused, and how long its routes pass nothing. */
const PAUSED_MS = 20_000;
const SEPARATED_MS = 12_800;

/** How long all is well before a fault and after it, so that leases that it delayed have ended or are renewed. */
const SETTLED_MS = 2 * LEASE_MS;

/** What pushes may wait longer than plain messages to the same brokers. */
const OURS_MS = 3_000;
/** What they may wait for a host that is killed or ends in order, or for a broker that is restarted. */
const KNOWN_MS = 2_000;

const CALL_MS = 300_000;

const subjects = new JobSubjects(JOB);
const JOURNALS = Array.from({ length: SHARDS }, (_, shard) => subjects.journalStream(shard, 1));
const LEASES = bucketStream(subjects.leaseBucket());
const ALL = [...JOURNALS, LEASES];

/** The broker that the faults of a cluster befall. */
const VICTIM = 0;

/** One kind of fault, of something that is at `Place`. */
interface Fault<Place> {
  readonly name: string;
  /** What pushes may wait for it, if that does not depend on how long plain messages do. */
  readonly targetMs?: number;
  /** Prepares the fault. What it returns causes it, and settles when the fault is over. */
  readonly prepare: (place: Place, bed: FailoverBed) => Promise<() => Promise<void>>;
  /** Brings back what the fault has ended. */
  readonly repair?: (place: Place, bed: FailoverBed) => Promise<void>;
}

/** A cluster with the streams of a job and others. */
interface ClusterPlace {
  readonly cluster: TestCluster;
  readonly raw: RawPublisher;
}

/** Has the victim lead these streams of the job and the raw ones, and another broker the rest of the job's. */
async function leadByVictim(
  { cluster, raw }: ClusterPlace,
  streams: readonly string[],
): Promise<void> {
  await cluster.whole();
  await cluster.lead(VICTIM, [...streams, ...raw.streams]);
  await cluster.lead(
    (VICTIM + 1) % BROKERS,
    ALL.filter((stream) => !streams.includes(stream)),
  );
}

function leaderKilled(what: string, streams: readonly string[]): Fault<ClusterPlace> {
  return {
    name: `failover, leader of ${what} killed`,
    prepare: async (place) => {
      await leadByVictim(place, streams);
      return () => place.cluster.kill(VICTIM);
    },
    repair: ({ cluster }) => cluster.restart(VICTIM),
  };
}

const CLUSTER_FAULTS: readonly Fault<ClusterPlace>[] = [
  leaderKilled("the journals", JOURNALS),
  leaderKilled("the leases", [LEASES]),
  leaderKilled("all", ALL),
  {
    name: "failover, leader of all paused for 20 s",
    prepare: async (place) => {
      await leadByVictim(place, ALL);
      return async () => {
        await place.cluster.freeze(VICTIM);
        await delay(PAUSED_MS);
        place.cluster.thaw(VICTIM);
      };
    },
  },
  {
    name: "failover, leader of all separated for 12.8 s",
    prepare: async (place) => {
      await leadByVictim(place, ALL);
      return async () => {
        place.cluster.isolate(VICTIM);
        await delay(SEPARATED_MS);
        place.cluster.join(VICTIM);
      };
    },
    targetMs: SEPARATED_MS + OURS_MS,
  },
];

const SINGLE_FAULTS: readonly Fault<TestBroker>[] = [
  {
    name: "failover, host killed",
    targetMs: KNOWN_MS,
    prepare: async (_broker, bed) => {
      const { pid } = bed.host(0);
      return async () => signalProcess(pid, "SIGKILL");
    },
    repair: (_broker, bed) => bed.startHost(0),
  },
  {
    name: "failover, host ended in order",
    targetMs: KNOWN_MS,
    prepare: async (_broker, bed) => {
      const host = bed.host(0);
      return () => host.call("close", undefined);
    },
    repair: (_broker, bed) => bed.startHost(0),
  },
  {
    name: "failover, broker restarted",
    targetMs: KNOWN_MS,
    prepare: async (broker) => async () => {
      await broker.stop();
      await broker.start();
    },
  },
];

/**
 * Measures how long pushes wait after faults of a cluster of three brokers, and of hosts of a single broker. A quick
 * run does so only if it is asked for: a fault takes half a minute.
 */
export async function benchFailover(options: FailoverOptions): Promise<FailoverTime[]> {
  if (options.quick && options.only.length === 0) return [];
  return [...(await benchCluster(options)), ...(await benchSingle(options))];
}

function wantedOf<Place>(
  faults: readonly Fault<Place>[],
  options: FailoverOptions,
): Fault<Place>[] {
  return faults.filter(({ name }) => isWanted(options, name));
}

async function benchCluster(options: FailoverOptions): Promise<FailoverTime[]> {
  const faults = wantedOf(CLUSTER_FAULTS, options);
  if (faults.length === 0) return [];
  const cluster = await TestCluster.start(BROKERS);
  try {
    const raw = await RawPublisher.start(cluster.urls, SHARDS);
    const bed = await FailoverBed.open(cluster.urls, options.profileDirectory);
    try {
      return await measureFaults({ cluster, raw }, bed, faults, options, raw);
    } finally {
      await bed.close();
      await raw.close();
    }
  } finally {
    await cluster.remove();
  }
}

async function benchSingle(options: FailoverOptions): Promise<FailoverTime[]> {
  const faults = wantedOf(SINGLE_FAULTS, options);
  if (faults.length === 0) return [];
  const broker = await startTestBroker();
  try {
    const bed = await FailoverBed.open([broker.url], options.profileDirectory);
    try {
      return await measureFaults(broker, bed, faults, options);
    } finally {
      await bed.close();
    }
  } finally {
    await broker.remove();
  }
}

/** Causes each fault once a round. */
async function measureFaults<Place>(
  place: Place,
  bed: FailoverBed,
  faults: readonly Fault<Place>[],
  options: FailoverOptions,
  raw?: RawPublisher,
): Promise<FailoverTime[]> {
  const rounds = new Map<string, FaultRound[]>(faults.map(({ name }) => [name, []]));
  for (let round = 1; round <= options.rounds; round++) {
    for (const fault of faults) {
      const found = await measureFault(place, bed, fault, raw);
      rounds.get(fault.name)?.push(found);
      options.log(`${fault.name}: ${found.stallMs.toFixed(0)} ms (${round})`);
    }
  }
  return faults.map(({ name, targetMs }) => {
    const found = rounds.get(name) ?? [];
    const rawStallMs = spread(found.flatMap((round) => round.rawStallMs ?? []));
    return {
      ...{ name, stallMs: spread(found.map(({ stallMs }) => stallMs)) },
      ...(raw !== undefined && { rawStallMs }),
      targetMs: targetMs ?? rawStallMs.median + OURS_MS,
      errors: found.flatMap(({ errors }) => errors),
    };
  });
}

/** What one fault led to. */
interface FaultRound {
  readonly stallMs: number;
  readonly rawStallMs: number | undefined;
  readonly errors: readonly string[];
}

async function measureFault<Place>(
  place: Place,
  bed: FailoverBed,
  fault: Fault<Place>,
  raw: RawPublisher | undefined,
): Promise<FaultRound> {
  const cause = await fault.prepare(place, bed);
  await delay(SETTLED_MS);
  const sinceMs = machineMs();
  await cause();
  await delay(SETTLED_MS);
  const untilMs = machineMs();
  const stalls = await bed.pusher.call("stalls", { sinceMs, untilMs }, CALL_MS);
  const rawStallMs = await raw?.longestStallMs(sinceMs, untilMs);
  await fault.repair?.(place, bed);
  return {
    stallMs: Math.max(...stalls.map(({ stallMs }) => stallMs)),
    rawStallMs,
    errors: stalls.flatMap(({ errors }) => errors),
  };
}

/** Hosts of a job, and trainers that push to all of its shards. */
class FailoverBed {
  readonly pusher: AgentProcess<Pusher>;
  readonly #urls: readonly string[];
  readonly #hosts: AgentProcess<BenchHost>[] = [];

  private constructor(urls: readonly string[], profileDirectory: string | undefined) {
    this.#urls = urls;
    this.pusher = AgentProcess.start<Pusher>("pusher", profileDirectory);
  }

  /** Starts the hosts of a new job and the trainers. */
  static async open(
    urls: readonly string[],
    profileDirectory: string | undefined,
  ): Promise<FailoverBed> {
    const bed = new FailoverBed(urls, profileDirectory);
    for (const number of HOSTS.keys()) await bed.startHost(number);
    await bed.pusher.call("open", { urls: [...urls], job: JOB, shards: SHARDS });
    return bed;
  }

  /** One of the two hosts; each owns some of the shards. */
  host(number: number): AgentProcess<BenchHost> {
    const host = this.#hosts[number];
    if (host === undefined) throw new Error(`no host ${number}`);
    return host;
  }

  /** Starts a host, again if it has ended. */
  async startHost(number: number): Promise<void> {
    const host = AgentProcess.start<BenchHost>("host", undefined);
    this.#hosts[number] = host;
    await host.call("open", {
      connection: { servers: [...this.#urls], timeoutMs: 5_000 },
      ...{ job: JOB, id: HOSTS[number] ?? "", shards: SHARDS, leaseMs: LEASE_MS, workers: 1 },
      ...{ replicas: this.#urls.length, journalBytesMax: 16 * 1024 ** 2 },
    });
  }

  async close(): Promise<void> {
    await this.pusher.stop();
    await Promise.all(this.#hosts.map((host) => host.stop()));
  }
}
