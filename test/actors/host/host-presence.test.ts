// Proves that a connection on which a worker answers counts from when the leases name its broker, and not from before it was
// made, nor while it is lost; and that the value of a host's leases names the brokers of its workers and changes with each
// connection.
import { setImmediate } from "node:timers/promises";
import type { NatsConnection, Status } from "@nats-io/transport-node";
import { beforeEach, describe, expect, test } from "vitest";
import {
  AnsweringConnection,
  type ConnectedNotice,
  HostIdentity,
} from "../../../src/actors/host/host-presence.ts";

/** Later than all times of the tests. */
const LATER_NS = 1_000_000n;

let broker: string;
let push: (status: Status["type"]) => Promise<void>;
let told: ConnectedNotice[];
let answering: AnsweringConnection;

beforeEach(() => {
  broker = "N1";
  told = [];
  const waiting: ((status: Status) => void)[] = [];
  async function* statuses(): AsyncGenerator<Status> {
    for (;;) yield await new Promise<Status>((resolve) => waiting.push(resolve));
  }
  push = async (type) => {
    waiting.shift()?.({ type } as Status);
    await setImmediate();
  };
  const connection = {
    get info() {
      return { server_id: broker };
    },
    status: statuses,
  } as unknown as NatsConnection;
  answering = new AnsweringConnection(connection, (notice) => told.push(notice));
  void answering.watch();
});

describe("a connection that answers", () => {
  test("counts from when it is told that leases name its broker", () => {
    expect(told).toEqual([{ connection: 1, broker: "N1" }]);
    expect(answering.namedSinceNs).toBeGreaterThan(LATER_NS);
    answering.named({ connection: 1, namedSinceNs: 5n });
    expect(answering.namedSinceNs).toBe(5n);
  });

  test("does not count while it is lost, nor until leases name the broker that it then leads to", async () => {
    answering.named({ connection: 1, namedSinceNs: 5n });
    await push("disconnect");
    expect(answering.namedSinceNs).toBeGreaterThan(LATER_NS);
    broker = "N2";
    await push("reconnect");
    expect(told.at(-1)).toEqual({ connection: 2, broker: "N2" });
    expect(answering.namedSinceNs).toBeGreaterThan(LATER_NS);
    answering.named({ connection: 2, namedSinceNs: 9n });
    expect(answering.namedSinceNs).toBe(9n);
  });

  test("does not count by an answer that is about the connection before", async () => {
    await push("disconnect");
    await push("reconnect");
    answering.named({ connection: 1, namedSinceNs: 5n });
    expect(answering.namedSinceNs).toBeGreaterThan(LATER_NS);
  });
});

test("leases name the brokers of all workers, and change with each connection", () => {
  const identity = new HostIdentity({ owner: "run", host: "h" });
  identity.connected(0, "N2");
  identity.connected(1, "N1");
  expect(identity.value).toEqual({
    ...{ owner: "run", host: "h" },
    ...{ brokers: ["N1", "N2"], connections: 2 },
  });
  identity.connected(0, "N1");
  expect(identity.value).toMatchObject({ brokers: ["N1"], connections: 3 });
  identity.connected(0, "N1");
  expect(identity.value).toMatchObject({ brokers: ["N1"], connections: 4 });
});
