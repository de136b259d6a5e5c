import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Broker, type BrokerOptions, startBroker } from "../../src/broker/start-broker.ts";
import { ensureError } from "../../src/protocol/index.ts";
import { HANG_MS } from "./limits.ts";

/** Pause before a port that somebody else has is tried again. */
const PAUSE_MS = 100;

/** A broker of one test: on a free port, in a temporary directory that goes with it. */
export interface TestBroker {
  /** Stays the same when the broker is started again. */
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  /** The process that runs now, or ran last. */
  readonly current: Broker;
  /** Ends it in order and keeps its data; see {@link TestBroker.start}. */
  stop(): Promise<void>;
  /** Ends it as a crash does and keeps its data. */
  kill(): Promise<void>;
  /** Starts it on the same port and data, after `stop` or `kill`; `changes` replace options. */
  start(changes?: Partial<BrokerOptions>): Promise<void>;
  /** Ends it and removes its data. Put it in `afterAll` or `onTestFinished`. */
  remove(): Promise<void>;
}

/** Starts a broker for a test. */
export async function startTestBroker(options: Partial<BrokerOptions> = {}): Promise<TestBroker> {
  const home = await mkdtemp(join(tmpdir(), "pserver-test-"));
  const storeDir = options.storeDir ?? join(home, "store");
  let current: Broker;
  try {
    current = await startBroker({ ...options, storeDir });
  } catch (error) {
    await rm(home, { recursive: true, force: true });
    throw error;
  }
  const { url, port } = current;
  return {
    url,
    port,
    storeDir,
    get current(): Broker {
      return current;
    },
    stop: () => current.stop(),
    kill: () => current.kill(),
    async start(changes: Partial<BrokerOptions> = {}): Promise<void> {
      current = await startAgain({ ...options, ...changes, storeDir, port });
    },
    async remove(): Promise<void> {
      // Its data goes, so it need not be written out first.
      await current.kill();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Starts a broker on the port that it had: while nobody had it, another test may have been given it for a time. */
async function startAgain(options: BrokerOptions): Promise<Broker> {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    try {
      return await startBroker(options);
    } catch (error) {
      const isTaken = ensureError(error).code === "ADDRESS_IN_USE";
      if (!isTaken || performance.now() > deadline) throw error;
      await delay(PAUSE_MS);
    }
  }
}
