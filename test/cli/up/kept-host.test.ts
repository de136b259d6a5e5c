// Proves, with hosts that only pretend, that one that ends is started again, with which reason this ends, that
// a first start that fails is not repeated, and that a stop takes precedence. When it is started again is
// proved by test/cli/supervise.test.ts.
import { expect, test, vi } from "vitest";
import {
  KeptHost,
  type KeptHostOptions,
  type StartedHost,
} from "../../../src/cli/up/kept-processes.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

interface FakeHost extends StartedHost {
  end(reason?: PserverError): void;
  readonly stops: number;
}

/** Hosts `a1`, `a2`, …; `fails` says of which start, counted from 1, nothing comes. */
class Hosts {
  readonly started: FakeHost[] = [];
  readonly messages: string[] = [];
  readonly #fails: (start: number) => boolean;

  constructor(fails: (start: number) => boolean = () => false) {
    this.#fails = fails;
  }

  keep(more: Partial<KeptHostOptions> = {}): KeptHost {
    const start = (): FakeHost => {
      const host = fakeHost(`a${this.started.length + 1}`, this.#fails(this.started.length + 1));
      this.started.push(host);
      return host;
    };
    const onMessage = (text: string): void => void this.messages.push(text);
    return KeptHost.start({ name: "host 1", start, onMessage, pause: async () => {}, ...more });
  }

  async until(condition: () => boolean): Promise<void> {
    await vi.waitFor(() => expect(condition()).toBe(true), { timeout: 40_000, interval: 1 });
  }
}

function fakeHost(id: string, fails: boolean): FakeHost {
  const refused = new PserverError("NO_BROKER", "nobody there");
  let end: (reason?: PserverError) => void = () => {};
  let stops = 0;
  const stopped = new Promise<PserverError | undefined>((resolve) => {
    end = resolve;
  });
  const ready = fails ? Promise.reject(refused) : Promise.resolve(id);
  ready.catch(() => end(refused));
  const stop = async (): Promise<void> => {
    stops += 1;
    end();
  };
  return {
    ...{ ready, stopped, stop, end },
    get stops(): number {
      return stops;
    },
  };
}

const KILLED = new PserverError("CLOSED", "the host process ended by SIGKILL");

test("starts a host that ended again, and tells it", async () => {
  const hosts = new Hosts();
  const host = hosts.keep();
  expect(await host.ready).toBe("a1");
  hosts.started[0]?.end(KILLED);
  await hosts.until(() => hosts.messages.length === 2);
  expect(hosts.messages).toEqual([
    "host 1 has ended: CLOSED: the host process ended by SIGKILL; starting it again (1 of 5)",
    "host 1 is back as a2",
  ]);
  await host.stop();
  expect(hosts.started.map(({ stops }) => stops)).toEqual([0, 1]);
  expect(await host.stopped).toBeUndefined();
  expect(hosts.started).toHaveLength(2);
});

test("gives up after five times in a row, with the reason", async () => {
  const hosts = new Hosts();
  const host = hosts.keep();
  for (let i = 0; i < 6; i++) {
    await hosts.until(() => hosts.started.length === i + 1);
    hosts.started[i]?.end(KILLED);
  }
  expect(await host.stopped).toBe(KILLED);
  expect(hosts.started).toHaveLength(6);
});

test("tells starts that fail", async () => {
  const hosts = new Hosts((start) => start > 1);
  const host = hosts.keep();
  await host.ready;
  hosts.started[0]?.end(KILLED);
  expect(await host.stopped).toBe(KILLED);
  expect(hosts.started).toHaveLength(6);
  expect(hosts.messages[4]).toBe(
    "host 1 did not start: NO_BROKER: nobody there; starting it again (5 of 5)",
  );
});

test("does not repeat a first start that fails", async () => {
  const hosts = new Hosts(() => true);
  const host = hosts.keep();
  await expect(host.ready).rejects.toMatchObject({ code: "NO_BROKER" });
  expect(await host.stopped).toMatchObject({ code: "NO_BROKER" });
  expect(hosts.started).toHaveLength(1);
});

test("a stop before the next start takes precedence", async () => {
  const hosts = new Hosts();
  const pause = (_: number, signal: AbortSignal): Promise<void> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const host = hosts.keep({ pause });
  await host.ready;
  hosts.started[0]?.end(KILLED);
  await hosts.until(() => hosts.messages.length === 1);
  await host.stop();
  expect(await host.stopped).toBeUndefined();
  expect(hosts.started).toHaveLength(1);
  expect(hosts.started[0]?.stops).toBe(0);
});

test("names each host that has served and died, and none that was stopped or never served", async () => {
  const hosts = new Hosts((start) => start === 3);
  const died: string[] = [];
  const host = hosts.keep({ onDied: (id) => died.push(id) });
  for (const start of [1, 2]) {
    await hosts.until(() => hosts.started.length === start);
    hosts.started[start - 1]?.end(KILLED);
  }
  await hosts.until(() => hosts.started.length === 4 && hosts.messages.length === 5);
  await host.stop();
  expect(await host.stopped).toBeUndefined();
  expect(died).toEqual(["a1", "a2"]);
});
