import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectToBroker } from "@nats-io/transport-node";
import type { HostOptions } from "../../src/actors/host/host.ts";
import type { BrokerOptions } from "../../src/broker/start-broker.ts";
import { type Client, type ConnectOptions, connect } from "../../src/client/index.ts";
import { bucketStream, JobSubjects, type WireError } from "../../src/protocol/index.ts";
import { startTestBroker, type TestBroker } from "./broker.ts";
import { HANG_MS, LASTING_LEASE_MS } from "./limits.ts";
import { checkedPid } from "./signals.ts";
import { testProgram } from "./test-program.ts";

/** The compiled program; `make programs` makes it. */
const PROGRAM = testProgram("host-process");

/** What a host process tells: the events of a host, and how it started and stopped. */
export interface HostLine {
  readonly type: string;
  readonly shard?: number;
  readonly error?: WireError;
  readonly [entry: string]: unknown;
}

/** Hosts to be ended when the test process exits without ending them. */
const running = new Set<TestHost>();
process.once("exit", () => {
  for (const host of running) host.signal("SIGKILL");
});

/** A host of one test, a process of its own. */
export class TestHost {
  readonly lines: HostLine[] = [];
  readonly exited: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #listeners: (() => void)[] = [];
  #ended = false;
  #errors = "";

  /** `preload`: a module that is loaded before the program, in all of its threads. */
  constructor(options: Omit<HostOptions, "onEvent">, preload?: string) {
    const flags = preload === undefined ? [] : ["--import", pathToFileURL(preload).href];
    this.#child = spawn(process.execPath, [...flags, PROGRAM, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    running.add(this);
    this.#child.stdin.on("error", () => undefined);
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.lines.push(JSON.parse(line) as HostLine);
      this.#wake();
    });
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#errors += chunk.toString();
    });
    this.exited = new Promise((resolve) => {
      this.#child.once("close", () => {
        this.#ended = true;
        running.delete(this);
        this.#wake();
        resolve();
      });
    });
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  get pid(): number {
    return checkedPid(this.#child.pid);
  }

  /** The shards that it serves now. */
  get serving(): number[] {
    const shards = new Set<number>();
    for (const { type, shard } of this.lines) {
      if (shard === undefined) continue;
      if (type === "serving") shards.add(shard);
      if (type === "released" || type === "shard-failed") shards.delete(shard);
    }
    return [...shards].sort((a, b) => a - b);
  }

  /** The first line from number `from` on that `matches`; waits for it. */
  async line(matches: (line: HostLine) => boolean, from = 0): Promise<HostLine> {
    await this.until(() => this.lines.slice(from).some(matches));
    return this.lines.slice(from).find(matches) as HostLine;
  }

  /** Waits until a condition on what it told holds. */
  async until(holds: () => boolean): Promise<void> {
    const deadline = performance.now() + HANG_MS;
    while (!holds()) {
      const told = `it told ${this.lines.map((line) => JSON.stringify(line)).join("\n")}`;
      if (this.#ended) throw new Error(`the host has ended; ${told}\n${this.#errors}`);
      if (performance.now() > deadline) throw new Error(`waited in vain; ${told}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000);
        this.#listeners.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.#ended) this.#child.kill(signal);
  }

  /** Ends it in order. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    await this.exited;
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  #wake(): void {
    for (const listener of this.#listeners.splice(0)) listener();
  }
}

/** A broker with one job, its hosts and trainers; all of them end with it. */
export class TestJob {
  readonly broker: TestBroker;
  readonly job: string;
  readonly hosts: TestHost[] = [];
  readonly #defaults: Partial<HostOptions>;
  readonly #clients: Client[] = [];

  private constructor(broker: TestBroker, job: string, defaults: Partial<HostOptions>) {
    this.broker = broker;
    this.job = job;
    this.#defaults = defaults;
  }

  /** Starts the broker; `defaults` are options of every host. */
  static async start(
    defaults: Partial<HostOptions> = {},
    broker: Partial<BrokerOptions> = {},
  ): Promise<TestJob> {
    return new TestJob(await startTestBroker(broker), "j", defaults);
  }

  /**
   * A host that has started, or a process that may still fail to start. Leases last unless the job says otherwise:
   * see {@link crash}. `preload`: as of {@link TestHost}.
   */
  spawnHost(options: Partial<HostOptions> = {}, preload?: string): TestHost {
    const settings = {
      connection: { servers: [this.broker.url], timeoutMs: HANG_MS },
      job: this.job,
      shards: 4,
      leaseMs: LASTING_LEASE_MS,
      ...this.#defaults,
      ...options,
    };
    const host = new TestHost(settings, preload);
    this.hosts.push(host);
    return host;
  }

  /** Starts a host and waits until it serves its share. */
  async host(options: Partial<HostOptions> = {}, preload?: string): Promise<TestHost> {
    const host = this.spawnHost(options, preload);
    await host.line(({ type }) => type === "started");
    return host;
  }

  /**
   * Ends the job's only host as a crash does, and its leases as their time would, so that the next host
   * takes over at once while the leases of trainers last.
   */
  async crash(host: TestHost): Promise<void> {
    await host.kill();
    const connection = await connectToBroker({ servers: this.broker.url });
    const { streams } = await jetstreamManager(connection);
    const bucket = new JobSubjects(this.job).leaseBucket();
    for (const holder of ["host", "shard"]) {
      await streams.purge(bucketStream(bucket), { filter: `$KV.${bucket}.${holder}.>` });
    }
    await connection.close();
  }

  /** A trainer in this process. */
  async trainer(trainer: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
    const client = await connect({
      url: this.broker.url,
      job: this.job,
      trainer,
      timeoutMs: HANG_MS,
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** Ends everything and removes the data. */
  async remove(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close({ timeoutMs: 1 })));
    await Promise.all(this.hosts.map((host) => host.kill()));
    await this.broker.remove();
  }
}
