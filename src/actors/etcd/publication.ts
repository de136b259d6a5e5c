import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.ts";
import type { BrokerProbe } from "../leases/broker-probe.ts";
import { Rounds } from "../rounds.ts";
import type { EtcdClient, EtcdEntry, EtcdGuard, EtcdWrite } from "./etcd-client.ts";
import type { EtcdKeys } from "./etcd-keys.ts";
import { checkPublishedJob } from "./etcd-space.ts";
import type { InitializationKeys } from "./initialization-keys.ts";

/** Dependencies of {@link Publication}. */
export interface PublicationDeps {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
  readonly job: string;
  /** The broker's addresses as trainers reach them. */
  readonly urls: readonly string[];
  readonly leaseMs: number;
  /** Of that broker: a host without a connection to it publishes nothing. */
  readonly probe: BrokerProbe;
  /** Shown again in each round: the state of the job's initialization. */
  readonly initialization: Pick<InitializationKeys, "show">;
  /** Told of each round that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
}

/** The keys of the published hosts. */
interface Published {
  readonly servers: readonly EtcdEntry[];
  readonly job: EtcdEntry | undefined;
  readonly desired: EtcdEntry | undefined;
}

/** Lease times that a starting host waits until the keys of a dead host have expired. */
const START_LEASES = 4;

/**
 * Keeps one host in etcd's list of servers: `/ps/<i>` with the broker's addresses, the job's name and
 * the number of hosts. All of these keys are attached to one lease, so that they expire with the host. A
 * shared key that expires with a dead host is written again by any other within a third of a lease time.
 */
export class Publication {
  readonly #deps: PublicationDeps;
  #lease: string | undefined;
  /** Whether this host has ever been in the list, and so knows which job is published there. */
  #listed = false;
  readonly #rounds = new Rounds(() => this.#round());

  constructor(deps: PublicationDeps) {
    this.#deps = deps;
  }

  /**
   * Publishes the host and keeps it published until {@link Publication.stop}.
   * @throws JOB_EXISTS if hosts of another job are published there, NO_ETCD, BUSY.
   */
  async start(): Promise<void> {
    const { leaseMs, job } = this.#deps;
    const until = performance.now() + START_LEASES * Math.max(leaseMs, 1_000);
    while (!(await this.#publish())) {
      if (performance.now() > until) {
        throw new PserverError(
          "BUSY",
          `job ${job}: the keys in etcd kept changing while the host started`,
          { job },
        );
      }
      await delay(leaseMs / 10);
    }
    await this.#deps.initialization.show();
    await this.#rounds.start(leaseMs / 3);
  }

  /** Shows the state of the job at once; a failure is reported, and the next round shows the state. */
  async showJob(): Promise<void> {
    try {
      await this.#deps.initialization.show();
    } catch (error) {
      this.#deps.onError(ensureError(error));
    }
  }

  /** Ends the publication and revokes its lease. @throws NO_ETCD: the keys then expire by themselves. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease !== undefined) await this.#deps.client.revoke(lease);
  }

  async #round(): Promise<number> {
    try {
      await this.#deps.probe.reach();
      await this.#publish();
      await this.#deps.initialization.show();
    } catch (error) {
      this.#deps.onError(ensureError(error));
    }
    return this.#deps.leaseMs / 3;
  }

  /** One attempt; false if keys of dead hosts have not expired yet or somebody else wrote in between. */
  async #publish(): Promise<boolean> {
    const { client, keys } = this.#deps;
    const lease = await this.#liveLease();
    const published = await this.#read();
    const { servers, job } = published;
    checkPublishedJob(job?.value, this.#deps.job, keys);
    // Hosts are listed, but no job: the host that wrote it has just died, and another will write it again.
    if (job === undefined && servers.length > 0 && !this.#listed) return false;
    const change = this.#changes(published, lease);
    if (change.writes.length > 0 && !(await client.swap(change.guards, change.writes))) {
      return false;
    }
    this.#listed = true;
    return true;
  }

  /** The present lease, extended, or a new one. */
  async #liveLease(): Promise<string> {
    const { client, leaseMs } = this.#deps;
    if (this.#lease === undefined || !(await client.keepAlive(this.#lease))) {
      this.#lease = await client.grant(leaseMs);
    }
    return this.#lease;
  }

  async #read(): Promise<Published> {
    const { client, keys } = this.#deps;
    const desired = await client.read(keys.desired);
    const found = await client.list(keys.servers);
    return {
      servers: found.filter(({ key }) => keys.serverIndex(key) !== undefined),
      job: found.find(({ key }) => key === keys.job),
      desired,
    };
  }

  #changes(
    { servers, job, desired }: Published,
    lease: string,
  ): { guards: EtcdGuard[]; writes: EtcdWrite[] } {
    const { keys, urls } = this.#deps;
    const guards: EtcdGuard[] = [];
    const writes: EtcdWrite[] = [];
    const write = (key: string, value: string, found: EtcdEntry | undefined): void => {
      guards.push({ key, revision: found?.revision });
      writes.push({ kind: "put", key, value, lease });
    };
    const isListed = servers.some((entry) => entry.lease === lease);
    if (!isListed) {
      const taken = new Set(servers.map(({ key }) => keys.serverIndex(key)));
      let index = 0;
      while (taken.has(index)) index++;
      write(`${keys.servers}${index}`, urls.join(","), undefined);
    }
    if (job === undefined) write(keys.job, this.#deps.job, undefined);
    const count = String(servers.length + (isListed ? 0 : 1));
    if (desired?.value !== count) write(keys.desired, count, desired);
    return { guards, writes };
  }
}
