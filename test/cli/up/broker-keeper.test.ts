// Proves, with brokers that only pretend, that one that ends is started again on its port, with which error
// this ends, that a stop in between wins, and that one whose store is stuck is ended, once, to be started
// again. When it is started again is proved by test/cli/supervise.test.ts.
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import type { Broker, BrokerExit } from "../../../src/broker/index.ts";
import { BrokerKeeper } from "../../../src/cli/up/kept-processes.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

interface FakeBroker extends Broker {
  end(exit: BrokerExit): void;
}

const KILLED: BrokerExit = { code: null, signal: "SIGKILL" };

/** Brokers on port 4333; `fails` says of which start, counted from 1, nothing comes. */
class Brokers {
  readonly started: FakeBroker[] = [];
  readonly ports: (number | undefined)[] = [];
  readonly messages: string[] = [];
  /** What the keeper wants to be told by each start. */
  readonly onStoreStuck: (() => void)[] = [];
  readonly #fails: (start: number) => boolean;
  readonly #storeDir: string;
  #wake: () => void = () => {};

  constructor(fails: (start: number) => boolean = () => false, storeDir = tmpdir()) {
    this.#fails = fails;
    this.#storeDir = storeDir;
  }

  keep(): Promise<BrokerKeeper> {
    return BrokerKeeper.start({
      name: "the broker",
      start: async (port, onStoreStuck) => {
        this.ports.push(port);
        this.onStoreStuck.push(onStoreStuck);
        if (this.#fails(this.ports.length)) throw new PserverError("IO", "no start");
        const broker = fakeBroker(this.#storeDir);
        this.started.push(broker);
        this.#wake();
        return broker;
      },
      onMessage: (text) => {
        this.messages.push(text);
        this.#wake();
      },
      pause: async () => {},
    });
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function fakeBroker(storeDir: string): FakeBroker {
  let end: (exit: BrokerExit) => void = () => {};
  const exited = new Promise<BrokerExit>((resolve) => {
    end = resolve;
  });
  const stop = async (): Promise<void> => end({ code: 0, signal: null });
  const facts = {
    url: "nats://127.0.0.1:4333",
    port: 4333,
    pid: 1,
    storeDir,
    version: "2.12.0",
  };
  return { ...facts, exited, end, stop, kill: stop };
}

test("starts a broker that ended again, on its port", async () => {
  const brokers = new Brokers();
  const keeper = await brokers.keep();
  brokers.started[0]?.end(KILLED);
  await brokers.until(() => brokers.messages.length === 2);
  expect(brokers.ports).toEqual([undefined, 4333]);
  expect(keeper.broker).toBe(brokers.started[1]);
  expect(brokers.messages).toEqual([
    "the broker ended by SIGKILL; starting it again (1 of 5)",
    "the broker is back at nats://127.0.0.1:4333",
  ]);
});

test("gives up after five times in a row", async () => {
  const brokers = new Brokers();
  const keeper = await brokers.keep();
  for (let i = 0; i < 6; i++) {
    await brokers.until(() => brokers.started.length === i + 1);
    brokers.started[i]?.end({ code: 3, signal: null });
  }
  expect(await keeper.failed).toMatchObject({
    code: "NO_BROKER",
    message: "the broker ended with exit code 3; it was started again 5 times",
  });
  expect(brokers.ports).toHaveLength(6);
});

test("ends with the reason of a start that failed", async () => {
  const brokers = new Brokers((start) => start > 1);
  const keeper = await brokers.keep();
  brokers.started[0]?.end(KILLED);
  expect(await keeper.failed).toMatchObject({ code: "IO" });
  expect(brokers.ports).toHaveLength(6);
});

test("does not start a broker again that it stopped", async () => {
  const brokers = new Brokers();
  const keeper = await brokers.keep();
  await keeper.stop();
  await brokers.started[0]?.exited;
  expect(brokers.ports).toHaveLength(1);
  expect(brokers.messages).toEqual([]);
});

test("a stop during a restart takes precedence", async () => {
  const brokers = new Brokers((start) => start > 1);
  const keeper = await brokers.keep();
  brokers.started[0]?.end(KILLED);
  await brokers.until(() => brokers.messages.length === 1);
  await keeper.stop();
  expect(brokers.ports.length).toBeLessThanOrEqual(2);
});

test("a first start that fails is not repeated", async () => {
  const brokers = new Brokers(() => true);
  await expect(brokers.keep()).rejects.toMatchObject({ code: "IO" });
  expect(brokers.ports).toHaveLength(1);
});

test("ends a broker whose store is stuck and starts it again, each time it is told", async () => {
  const brokers = new Brokers();
  const keeper = await brokers.keep();
  for (let i = 0; i < 2; i++) {
    // As often as records are refused.
    for (let told = 0; told < 3; told++) brokers.onStoreStuck[i]?.();
    await brokers.until(() => brokers.messages.length === 3 * (i + 1));
    expect(brokers.messages.slice(3 * i)).toEqual([
      "the broker cannot write since its disk was full; space is free again: restarting it",
      `the broker ended with exit code 0; starting it again (${i + 1} of 5)`,
      "the broker is back at nats://127.0.0.1:4333",
    ]);
    expect(keeper.broker).toBe(brokers.started[i + 1]);
  }
  expect(brokers.ports).toEqual([undefined, 4333, 4333]);
});

test("leaves a broker alone if its disk cannot be examined, and says why", async () => {
  const brokers = new Brokers(() => false, "/nowhere/store");
  await brokers.keep();
  brokers.onStoreStuck[0]?.();
  await brokers.until(() => brokers.messages.length === 1);
  expect(brokers.messages[0]).toMatch(/^cannot look at the disk of \/nowhere\/store: ENOENT/);
  expect(brokers.ports).toHaveLength(1);
});
