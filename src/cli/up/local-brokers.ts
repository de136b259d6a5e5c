import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import {
  type Broker,
  type BrokerOptions,
  type FoundBroker,
  startBroker,
} from "../../broker/index.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import type { BrokerAccess } from "./broker-access.ts";
import { BrokerKeeper } from "./kept-processes.ts";

/** Which brokers to run, and where. */
export interface BrokersOptions {
  readonly program: FoundBroker;
  /** Directory of all data. */
  readonly store: string;
  /** Number of brokers; 1 is no cluster. */
  readonly count: number;
  /** Port of the first broker, those of the others follow; 0 takes any free ones. */
  readonly port: number;
  /** Address to listen on; loopback by default. */
  readonly address: string | undefined;
  readonly durable: boolean | undefined;
  /** Most memory of each broker; undefined for a share of what there is. */
  readonly memoryBytes: number | undefined;
  readonly access: BrokerAccess;
  readonly signal: AbortSignal;
  readonly onMessage: (text: string) => void;
}

/** A broker of a local server, as `pserver up --json` prints it. */
export interface BrokerReady {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  readonly store: string;
  readonly log: string;
  /** Port at which it takes connections of the other brokers of its cluster; absent without one. */
  readonly routesPort?: number;
}

/** Brokers of a cluster take routes at ports so much above those of clients, as nats-server does by default. */
const ROUTES_ABOVE = 2_000;

const PORT_MAX = 65_535;

/** Name of a broker's directory in a cluster's store. */
const BROKER_DIRECTORY = "broker-";

/** The most brokers of a cluster. */
const BROKERS_MAX = 5;

/** The brokers of a local server, which are kept running: a single one, or a cluster on loopback. */
export class LocalBrokers {
  /** Settles with the reason once so many brokers are gone for good that nothing can be stored any more. */
  readonly failed: Promise<PserverError>;
  readonly #options: BrokersOptions;
  readonly #keepers: readonly BrokerKeeper[];
  readonly #routesPorts: readonly number[];

  private constructor(
    options: BrokersOptions,
    keepers: readonly BrokerKeeper[],
    routesPorts: readonly number[],
  ) {
    this.#options = options;
    this.#keepers = keepers;
    this.#routesPorts = routesPorts;
    this.failed = this.#majorityGone();
  }

  /**
   * Starts the brokers; settles when all accept clients.
   * @throws BAD_VALUE if a port would be too high; as `startBroker`.
   */
  static async start(options: BrokersOptions): Promise<LocalBrokers> {
    const { count } = options;
    const routesPorts = count === 1 ? [] : await routesPortsOf(options);
    const alive = new Alive(count, options.onMessage);
    const starts = await Promise.allSettled(
      Array.from({ length: count }, (_, number) =>
        BrokerKeeper.start({
          name: count === 1 ? "the broker" : `broker ${number + 1}`,
          start: async (port, onStoreStuck) => {
            const asked = options.port === 0 ? 0 : options.port + number;
            const all = brokerOptions(options, number, routesPorts);
            const broker = await startBroker({ ...all, port: port ?? asked, onStoreStuck });
            alive.started(broker);
            return broker;
          },
          onMessage: options.onMessage,
        }),
      ),
    );
    const keepers = starts.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const refused = starts.find((each) => each.status === "rejected");
    if (refused === undefined) {
      alive.watch(options.signal);
      return new LocalBrokers(options, keepers, routesPorts);
    }
    await Promise.all(keepers.map((keeper) => keeper.stop()));
    throw refused.reason;
  }

  /** Addresses of all brokers, with commas between them. */
  get url(): string {
    return this.urls.join(",");
  }

  /** The address of each broker. */
  get urls(): readonly string[] {
    return this.#keepers.map(({ broker }) => broker.url);
  }

  /** The port of each broker. */
  get ports(): readonly number[] {
    return this.#keepers.map(({ broker }) => broker.port);
  }

  /** What is to be told about each broker. */
  get ready(): readonly BrokerReady[] {
    return this.#keepers.map(({ broker: { url, pid, version, storeDir } }, number) => ({
      ...{ url, pid, version, store: storeDir, log: join(storeDir, "broker.log") },
      ...defined({ routesPort: this.#routesPorts[number] }),
    }));
  }

  /** Stops all brokers in order. */
  async stop(): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => keeper.stop()));
  }

  async #majorityGone(): Promise<PserverError> {
    const { count } = this.#options;
    return await new Promise((resolve) => {
      let gone = 0;
      for (const { failed } of this.#keepers) {
        void failed.then((reason) => {
          gone += 1;
          if (2 * (count - gone) <= count) resolve(reason);
          else this.#options.onMessage(reason.message);
        });
      }
    });
  }
}

/** Tells how many brokers of a cluster run, whenever one ends or is back. */
class Alive {
  readonly #count: number;
  readonly #onMessage: (text: string) => void;
  #running = 0;
  #isWatched = false;

  constructor(count: number, onMessage: (text: string) => void) {
    this.#count = count;
    this.#onMessage = onMessage;
  }

  started({ exited }: Broker): void {
    this.#running += 1;
    this.#tell();
    void exited.then(() => {
      this.#running -= 1;
      this.#tell();
    });
  }

  /** Begins to tell, until `signal`. */
  watch(signal: AbortSignal): void {
    this.#isWatched = !signal.aborted;
    signal.addEventListener("abort", () => {
      this.#isWatched = false;
    });
  }

  #tell(): void {
    if (!this.#isWatched || this.#count === 1) return;
    const isMajority = 2 * this.#running > this.#count;
    const rest = isMajority ? "" : ": nothing can be stored until a majority of them runs";
    this.#onMessage(`${this.#running} of ${this.#count} brokers run${rest}`);
  }
}

/** Returns the directory of a broker. A single one has that which nats.conf names, for a broker started by hand. */
export function brokerDirectory(store: string, count: number, number: number): string {
  return join(store, count === 1 ? "store" : `${BROKER_DIRECTORY}${number + 1}`);
}

/**
 * Checks that a store is new, or that of so many brokers.
 * @throws BAD_VALUE if it holds the data of a single broker and a cluster is wanted, or those of more brokers.
 */
export function checkStore(store: string, count: number): void {
  const single = existsSync(brokerDirectory(store, 1, 0));
  const numbers = Array.from({ length: BROKERS_MAX }, (_, number) => number);
  const highest = numbers.findLast((number) => existsSync(brokerDirectory(store, 2, number)));
  const held = highest === undefined ? 0 : highest + 1;
  if (count > 1 ? !single && held <= count : held === 0) return;
  const received = single && count > 1 ? "those of a single broker" : `those of ${held} brokers`;
  const expected = count === 1 ? "the data of a single broker" : `the data of ${count} brokers`;
  throw mismatch("BAD_VALUE", `the store ${store}`, expected, received);
}

function brokerOptions(
  { program, store, count, address, durable, memoryBytes, access, signal }: BrokersOptions,
  number: number,
  routesPorts: readonly number[],
): BrokerOptions {
  const cluster = count === 1 ? undefined : clusterConfig(number, routesPorts, access);
  const lines = [access.config.extraConfig, cluster].filter((each) => each !== undefined);
  return {
    ...access.config,
    program,
    storeDir: brokerDirectory(store, count, number),
    signal,
    brokersHere: count,
    ...defined({ durable, memoryBytes, host: address }),
    ...(lines.length > 0 && { extraConfig: lines.join("\n") }),
  };
}

/**
 * Returns the lines by which a broker is one of a cluster on this machine. Only a broker that has the certificate of
 * `--secure`, or the token, may connect as another one: what it says is believed.
 */
function clusterConfig(
  number: number,
  routesPorts: readonly number[],
  { token, auth }: Pick<BrokerAccess, "token" | "auth">,
): string {
  const user = token === undefined ? "" : `broker:${token}@`;
  const others = routesPorts.filter((_, other) => other !== number);
  const routes = others.map((port) => `"nats://${user}127.0.0.1:${port}"`);
  const lines = [
    `server_name: ${BROKER_DIRECTORY}${number + 1}`,
    "cluster {",
    "  name: pserver",
    `  listen: "127.0.0.1:${routesPorts[number]}"`,
    `  routes: [${routes.join(", ")}]`,
    ...(token === undefined ? [] : [`  authorization { user: broker, password: "${token}" }`]),
    ...(auth === undefined ? [] : [auth.routesTls]),
    "}",
  ];
  return lines.join("\n");
}

async function routesPortsOf({ port, count }: BrokersOptions): Promise<number[]> {
  if (port === 0) return await freePorts(count);
  const highest = port + count - 1 + ROUTES_ABOVE;
  if (highest > PORT_MAX) {
    const expected = `0, or at most ${PORT_MAX - ROUTES_ABOVE - count + 1}`;
    throw mismatch("BAD_VALUE", "--port", expected, String(port));
  }
  return Array.from({ length: count }, (_, number) => port + number + ROUTES_ABOVE);
}

/** Returns ports of loopback that are free now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  try {
    return await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve, reject) => {
            server.once("error", (cause) => {
              reject(new PserverError("IO", `no free port: ${cause.message}`, {}, { cause }));
            });
            server.listen(0, "127.0.0.1", () => {
              const address = server.address();
              resolve(typeof address === "object" && address !== null ? address.port : 0);
            });
          }),
      ),
    );
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}
