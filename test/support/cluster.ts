import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { openConnection } from "../../src/transport/connection.ts";
import type { TestAuth } from "./auth.ts";
import { startTestBroker, type TestBroker } from "./broker.ts";
import { freePorts } from "./free-ports.ts";
import { freeze, thaw } from "./freeze.ts";
import { HANG_MS } from "./limits.ts";
import { SilentLine } from "./silent-line.ts";

/** How long one question to a broker may take, and the pause before it is asked again. */
const QUESTION_MS = 2_000;
const PAUSE_MS = 50;

/** How long brokers that answer get to form a cluster. */
const FORMED_MS = 20_000;

/** How often the start of a cluster is tried. */
const ATTEMPTS_MAX = 5;

/** The line by which one broker of a cluster reaches another. */
interface Route {
  readonly from: number;
  readonly to: number;
  readonly line: SilentLine;
}

/** Brokers of one test that are one cluster, on loopback, each with a directory of its own. */
export class TestCluster {
  readonly #brokers: readonly TestBroker[];
  readonly #routes: readonly Route[];
  readonly #auth: TestAuth | undefined;
  /** Numbers of the brokers that can be asked. */
  readonly #up: Set<number>;
  /** Numbers of those that have been ended. */
  readonly #ended: Set<number> = new Set();

  private constructor(
    brokers: readonly TestBroker[],
    routes: readonly Route[],
    auth: TestAuth | undefined,
  ) {
    this.#auth = auth;
    this.#brokers = brokers;
    this.#routes = routes;
    this.#up = new Set(brokers.keys());
  }

  /**
   * Starts so many brokers; when this resolves, JetStream answers, and stores on all of them. `auth`: the users, and the
   * certificates of clients and routes, as with `pserver up --secure`.
   */
  static async start(size = 3, auth?: TestAuth): Promise<TestCluster> {
    for (let attempt = 1; ; attempt++) {
      const cluster = await TestCluster.#startBrokers(size, auth);
      await cluster.#streams();
      if (await cluster.#isFormed(size)) return cluster;
      // Of old brokers that start at the same time, the group that places streams may lack one for good.
      await cluster.remove();
      if (attempt === ATTEMPTS_MAX) throw new Error(`${size} brokers did not form a cluster`);
    }
  }

  /** Whether a stream can be placed on so many brokers, now or soon. */
  async #isFormed(size: number): Promise<boolean> {
    const deadline = performance.now() + FORMED_MS;
    for (;;) {
      try {
        await this.#manage(async ({ streams }) => {
          await streams.add({ name: "formed", num_replicas: size });
          await streams.delete("formed");
        });
        return true;
      } catch {
        if (performance.now() > deadline) return false;
        await delay(PAUSE_MS);
      }
    }
  }

  static async #startBrokers(size: number, auth?: TestAuth): Promise<TestCluster> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await TestCluster.#tryBrokers(size, auth);
      } catch (error) {
        // Routes name the ports of brokers before these listen there: another test may have been given one.
        if (attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  static async #tryBrokers(size: number, auth?: TestAuth): Promise<TestCluster> {
    const ports = await freePorts(size);
    const routes = await openRoutes(ports);
    const starts = await Promise.allSettled(
      ports.map((port, number) => {
        const urls = routes
          .filter(({ from }) => from === number)
          .map(({ line }) => `"${line.url}"`);
        // Clients stay where they are, and brokers reach each other by the lines alone.
        return startTestBroker({
          ...(auth && { authFile: auth.directory.configFile }),
          extraConfig: `server_name: ${serverName(number)}
cluster {
  name: test, listen: "127.0.0.1:${port}", routes: [${urls.join(", ")}]
  advertise: "127.0.0.1:1", no_advertise: true
  ${auth?.directory.routesTls ?? ""}
}`,
        });
      }),
    );
    const brokers = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    const cluster = new TestCluster(brokers, routes, auth);
    const failed = starts.find((start) => start.status === "rejected");
    if (failed !== undefined) {
      await cluster.remove();
      throw failed.reason;
    }
    return cluster;
  }

  /** Where clients find it: all brokers. */
  get urls(): string[] {
    return this.#brokers.map(({ url }) => url);
  }

  /** The number of the broker that leads a stream; waits for one. */
  async leader(stream: string): Promise<number> {
    return await this.#ask(async (streams) => {
      const found = streams.find(({ config }) => config.name === stream);
      const leader = this.#brokers.findIndex(
        (_, number) => serverName(number) === found?.cluster?.leader,
      );
      return this.#up.has(leader) ? leader : undefined;
    });
  }

  /** Has a broker lead these streams. It must be up, and hold what the others do. */
  async lead(number: number, streams: readonly string[]): Promise<void> {
    const connection = await this.#connect([this.broker(number).url]);
    try {
      for (const stream of streams) {
        while ((await this.leader(stream)) !== number) {
          const placement = { preferred: serverName(number) };
          const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`;
          await connection.request(subject, JSON.stringify({ placement }));
        }
      }
    } finally {
      await connection.close();
    }
  }

  /** Waits until every broker holds what the others do, so that any one may go. */
  async whole(): Promise<void> {
    await this.#ask(async (streams) => {
      const replicas = streams.flatMap(({ cluster }) => cluster?.replicas ?? []);
      const isWhole =
        streams.every(({ cluster }) => cluster?.leader !== undefined) &&
        replicas.every(({ current, offline }) => current && offline !== true);
      return isWhole || undefined;
    });
  }

  /** Ends a broker as a crash does; it keeps its data. */
  async kill(number: number): Promise<void> {
    this.#up.delete(number);
    this.#ended.add(number);
    await this.broker(number).kill();
  }

  /** Ends a broker in order; it keeps its data. */
  async stop(number: number): Promise<void> {
    this.#up.delete(number);
    this.#ended.add(number);
    await this.broker(number).stop();
  }

  /** Ends a broker as a crash does, and removes its data. */
  async wipe(number: number): Promise<void> {
    await this.kill(number);
    await rm(this.broker(number).storeDir, { recursive: true });
  }

  /** Starts a broker that has ended. */
  async restart(number: number): Promise<void> {
    await this.broker(number).start();
    this.#ended.delete(number);
    this.#up.add(number);
  }

  /** Starts all brokers that have ended. */
  async restartAll(): Promise<void> {
    await Promise.all([...this.#ended].map((number) => this.restart(number)));
  }

  /** Stops a broker in its tracks, its connections open. */
  async freeze(number: number): Promise<void> {
    this.#up.delete(number);
    await freeze(this.broker(number).current.pid);
  }

  /** Lets a frozen broker go on. */
  thaw(number: number): void {
    thaw(this.broker(number).current.pid);
    this.#up.add(number);
  }

  /** Parts a broker from the others: nothing passes between them, and no connection is closed. */
  isolate(number: number): void {
    this.#up.delete(number);
    for (const line of this.#linesOf(number)) line.silence();
  }

  /** Lets an isolated broker and the others reach each other again. */
  join(number: number): void {
    for (const line of this.#linesOf(number)) line.restore();
    this.#up.add(number);
  }

  /** Ends all brokers and removes their data. */
  async remove(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.remove()));
    await Promise.all(this.#routes.map(({ line }) => line[Symbol.asyncDispose]()));
  }

  #linesOf(number: number): SilentLine[] {
    const routes = this.#routes.filter(({ from, to }) => from === number || to === number);
    return routes.map(({ line }) => line);
  }

  /** Returns a broker, by its number. */
  broker(number: number): TestBroker {
    const broker = this.#brokers[number];
    if (broker === undefined) throw new Error(`no broker ${number}`);
    return broker;
  }

  /** Asks for the streams until the answer is one that is wanted. */
  async #ask<Answer>(
    read: (streams: readonly StreamInfo[]) => Promise<Answer | undefined>,
  ): Promise<Answer> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const answer = await read(await this.#streams());
      if (answer !== undefined) return answer;
      if (performance.now() > deadline) throw new Error("the cluster did not get there");
      await delay(PAUSE_MS);
    }
  }

  /** All streams, asked of a broker that is up, and again while the cluster has no leader. */
  async #streams(): Promise<StreamInfo[]> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      try {
        return await this.#list();
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await delay(PAUSE_MS);
      }
    }
  }

  async #list(): Promise<StreamInfo[]> {
    return await this.#manage(async ({ streams }) => {
      const all: StreamInfo[] = [];
      for await (const stream of streams.list()) all.push(stream);
      return all;
    });
  }

  async #connect(servers: string[]): Promise<NatsConnection> {
    if (this.#auth === undefined) {
      return await connect({ servers, timeout: QUESTION_MS, ignoreClusterUpdates: true });
    }
    const settings = { ...this.#auth.as("admin", servers), timeoutMs: QUESTION_MS };
    const inboxPrefix = `_INBOX_${this.#auth.directory.jobs[0]}.=host.cluster`;
    return await openConnection(settings, { name: "cluster", inboxPrefix });
  }

  async #manage<Result>(work: (manager: JetStreamManager) => Promise<Result>): Promise<Result> {
    const servers = [...this.#up].map((number) => this.broker(number).url);
    const connection = await this.#connect(servers);
    try {
      return await work(await jetstreamManager(connection, { timeout: QUESTION_MS }));
    } finally {
      await connection.close();
    }
  }
}

/** A line from each broker to each other one. */
async function openRoutes(ports: readonly number[]): Promise<Route[]> {
  const pairs = ports.flatMap((_, from) =>
    ports.flatMap((port, to) => (from === to ? [] : [{ from, to, port }])),
  );
  return await Promise.all(
    pairs.map(async ({ from, to, port }) => ({ from, to, line: await SilentLine.open(port) })),
  );
}

function serverName(number: number): string {
  return `broker-${number}`;
}
