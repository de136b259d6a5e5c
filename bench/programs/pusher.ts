import { setTimeout as delay } from "node:timers/promises";
import { type Client, connect } from "../../src/client/index.ts";
import { ensureError, hashName, type Tensor } from "../../src/protocol/index.ts";
import { machineMs, serveAgent } from "../agent.ts";
import { longestPauseMs } from "../raw-publisher.ts";

/** How the pushes of one client to one shard fared from some time on. */
export interface Stall {
  /** The longest time without an acknowledged push. */
  readonly stallMs: number;
  /** Codes of pushes that failed. */
  readonly errors: readonly string[];
}

/** The pushes of one client to one shard. */
interface Pushes {
  /** When pushes were acknowledged. */
  readonly ackedMs: number[];
  readonly failed: { readonly atMs: number; readonly code: string }[];
  /** When the last acknowledged push began. */
  begunMs: number;
}

/** Values of a parameter that is too large to share a shard with the ones that are declared with it. */
const ROW_ELEMENTS = 256;
const SHAPE = [256, ROW_ELEMENTS];
const VALUES: Tensor = {
  dtype: "float32",
  shape: SHAPE,
  data: new Float32Array(SHAPE.reduce((a, b) => a * b)),
};
const SPARSE = { learningRate: 1e-3, sparse: true };

/** What is pushed: the gradient of one row. */
const ROW = {
  rows: [0],
  values: {
    dtype: "float32",
    shape: [1, ROW_ELEMENTS],
    data: new Float32Array(ROW_ELEMENTS),
  } as const,
};

const CONNECT_MS = 60_000;
/** Pause between two pushes, and between two looks. */
const PAUSE_MS = 100;
const CLIENTS = 6;

/** Trainers that each push to every shard of a job all the time, one push after the other in each. */
const commands = {
  /** Joins a new job, initializes it, and begins to push. */
  async open(at: { urls: string[]; job: string; shards: number }): Promise<void> {
    const { urls: url, job, shards } = at;
    // Of so many clients, each broker has some: which one is chance.
    for (let i = 0; i < CLIENTS; i++) {
      clients.push(await connect({ url, job, trainer: `pusher-${i}`, timeoutMs: CONNECT_MS }));
    }
    const names = Array.from({ length: shards }, (_, shard) => nameInShard(shard, shards));
    const [first] = clients;
    await first?.beginInit();
    for (const name of names) await first?.initParam(name, VALUES, SPARSE);
    await first?.finishInit();
    for (const client of clients) for (const name of names) void keepPushing(client, name);
  },

  /**
   * Waits until each trainer has had a push to each shard acknowledged that began after `untilMs`. Returns for each the
   * longest time without an acknowledged push since `sinceMs`. Times are of the machine's clock.
   */
  async stalls(during: { sinceMs: number; untilMs: number }): Promise<Stall[]> {
    while (pushes.some(({ begunMs }) => begunMs < during.untilMs)) await delay(PAUSE_MS);
    return pushes.map((one) => stallOf(one, during.sinceMs));
  },

  async close(): Promise<void> {
    isClosing = true;
    await Promise.all(clients.map((client) => client.close({ timeoutMs: 1 })));
  },
};

export type Pusher = typeof commands;

const clients: Client[] = [];
let isClosing = false;
const pushes: Pushes[] = [];

/** A parameter's name that places it in this shard. */
function nameInShard(shard: number, shards: number): string {
  for (let i = 0; ; i++) if (hashName(`p${i}`) % shards === shard) return `p${i}`;
}

async function keepPushing(ps: Client, name: string): Promise<void> {
  const own: Pushes = { ackedMs: [], failed: [], begunMs: 0 };
  pushes.push(own);
  while (!isClosing) {
    const begunMs = machineMs();
    try {
      await ps.sendGrads({ [name]: ROW });
      own.ackedMs.push(machineMs());
      own.begunMs = begunMs;
    } catch (error) {
      own.failed.push({ atMs: machineMs(), code: ensureError(error).code });
    }
    await delay(PAUSE_MS);
  }
}

function stallOf({ ackedMs, failed }: Pushes, sinceMs: number): Stall {
  const stallMs = longestPauseMs(
    sinceMs,
    ackedMs.filter((atMs) => atMs >= sinceMs),
  );
  const errors = failed.filter(({ atMs }) => atMs >= sinceMs).map(({ code }) => code);
  return { stallMs, errors };
}

serveAgent(commands);
