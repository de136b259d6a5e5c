import { setTimeout as delay } from "node:timers/promises";
import { type EtcdKeys, ensureError, PserverError } from "../../protocol/index.ts";
import type { BrokerProbe } from "../leases/broker-bound-leases.ts";
import type { EtcdClient, EtcdEntry, EtcdGuard, EtcdWrite } from "./etcd-client.ts";
import type { EtcdKeys } from "./etcd-keys.ts";
import { checkPublishedJob } from "./etcd-space.ts";

/** What a {@link Publication} publishes, and where. */
export interface PublicationOptions {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
  readonly job: string;
  /** The broker's addresses as trainers reach them. */
  readonly urls: readonly string[];
  readonly leaseMs: number;
  /** Of that broker: a host that has lost it publishes nothing. */
  readonly probe: BrokerProbe;
  /** Does the rest of each round. */
  readonly alsoShow: () => Promise<void>;
  /** Told of each round that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
}

/** What the keys of the published hosts say. */
interface Published {
  readonly servers: readonly EtcdEntry[];
  readonly job: EtcdEntry | undefined;
  readonly desired: EtcdEntry | undefined;
}

/** Lease times that a host waits for the keys of a host that has died to be settled. */
const START_LEASES = 4;

/**
 * Keeps one host in etcd's list of servers: `/ps/<i>` with the broker's addresses, the job's name and
 * the number of hosts. All of it goes with one lease, so that it vanishes with the host; what a dead
 * host takes with it that is not its own, any other writes again within a third of a lease time.
 */
export class Publication {
  readonly #options: PublicationOptions;
  #lease: string | undefined;
  /** Whether this host has ever been in the list: it then knows whose job it is. */
  #listed = false;
  #running = false;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(options: PublicationOptions) {
    this.#options = options;
  }

  /**
   * Publishes the host and keeps it published until {@link Publication.stop}.
   * @throws JOB_EXISTS if hosts of another job are published there, NO_ETCD, BUSY.
   */
  async start(): Promise<void> {
    const { leaseMs, job } = this.#options;
    const until = performance.now() + START_LEASES * Math.max(leaseMs, 1_000);
    while (!(await this.#publish())) {
      if (performance.now() > until) {
        throw new PserverError("BUSY", `job ${job}: the keys in etcd change all the time`, { job });
      }
      await delay(leaseMs / 10);
    }
    await this.#options.alsoShow();
    this.#running = true;
    this.#schedule();
  }

  /** Ends it and removes what goes with the lease. @throws NO_ETCD: it then ends by itself. */
  async stop(): Promise<void> {
    this.#running = false;
    clearTimeout(this.#timer);
    await this.#round;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease !== undefined) await this.#options.client.revoke(lease);
  }

  #schedule(): void {
    if (!this.#running) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#runRound();
    }, this.#options.leaseMs / 3);
  }

  async #runRound(): Promise<void> {
    try {
      await this.#options.probe.reach();
      await this.#publish();
      await this.#options.alsoShow();
    } catch (error) {
      this.#options.onError(ensureError(error));
    }
    this.#schedule();
  }

  /** One attempt; false if the keys are not settled or somebody else wrote in between. */
  async #publish(): Promise<boolean> {
    const { client, keys } = this.#options;
    const lease = await this.#liveLease();
    const published = await this.#read();
    const { servers, job } = published;
    checkPublishedJob(job?.value, this.#options.job, keys);
    // Hosts without a job: who could tell whose died a moment ago. Its others will write it again.
    if (job === undefined && servers.length > 0 && !this.#listed) return false;
    const change = this.#changes(published, lease);
    if (change.writes.length > 0 && !(await client.swap(change.guards, change.writes))) {
      return false;
    }
    this.#listed = true;
    return true;
  }

  /** The lease, made to last, or a new one. */
  async #liveLease(): Promise<string> {
    const { client, leaseMs } = this.#options;
    if (this.#lease === undefined || !(await client.keepAlive(this.#lease))) {
      this.#lease = await client.grant(leaseMs);
    }
    return this.#lease;
  }

  async #read(): Promise<Published> {
    const { client, keys } = this.#options;
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
    const { keys, urls } = this.#options;
    const guards: EtcdGuard[] = [];
    const writes: EtcdWrite[] = [];
    const write = (key: string, value: string, found: EtcdEntry | undefined): void => {
      guards.push({ key, revision: found?.revision });
      writes.push({ put: key, value, lease });
    };
    const isListed = servers.some((entry) => entry.lease === lease);
    if (!isListed) {
      const taken = new Set(servers.map(({ key }) => keys.serverIndex(key)));
      let index = 0;
      while (taken.has(index)) index++;
      write(`${keys.servers}${index}`, urls.join(","), undefined);
    }
    if (job === undefined) write(keys.job, this.#options.job, undefined);
    const count = String(servers.length + (isListed ? 0 : 1));
    if (desired?.value !== count) write(keys.desired, count, desired);
    return { guards, writes };
  }
}
