import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import type { BrokerProbe } from "../leases/broker-bound-leases.ts";
import type { EtcdClient } from "./etcd-client.ts";
import type { EtcdSettings } from "./etcd-keys.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import { InitializationKeys } from "./initialization-keys.ts";
import { Publication } from "./publication.ts";

/** Options of {@link createHostInEtcd}. */
export interface HostInEtcdOptions {
  readonly space: EtcdSpace;
  readonly job: string;
  /** The broker's addresses as trainers reach them. */
  readonly urls: NonNullable<EtcdSettings["advertise"]>;
  readonly leaseMs: number;
  /** Of that broker. */
  readonly probe: BrokerProbe;
  /** The job's bucket. */
  readonly bucket: KvBucket;
  readonly onError: (error: PserverError) => void;
}

/** Dependencies of {@link HostInEtcd}. */
export interface HostInEtcdDeps {
  readonly client: EtcdClient;
  readonly initialization: InitializationKeys;
  readonly publication: Publication;
  readonly onError: (error: PserverError) => void;
}

/** Composes what one host shows in etcd. Nothing is shown before {@link HostInEtcd.start}. */
export function createHostInEtcd(options: HostInEtcdOptions): HostInEtcd {
  const { space, bucket, job, urls, leaseMs, probe, onError } = options;
  const { client, keys } = space;
  const initialization = new InitializationKeys(space, bucket);
  const publication = new Publication({
    ...{ client, keys, job, urls, leaseMs, probe, onError },
    alsoShow: () => initialization.show(),
  });
  return new HostInEtcd({ client, initialization, publication, onError });
}

/** What one host shows in etcd: itself, and the state of the job's initialization. */
export class HostInEtcd {
  readonly #deps: HostInEtcdDeps;

  constructor(deps: HostInEtcdDeps) {
    this.#deps = deps;
  }

  /** Publishes the host until {@link HostInEtcd.stop}; throws as `Publication.start`. */
  async start(): Promise<void> {
    await this.#deps.publication.start();
  }

  /** Shows the state of the job at once; a failure is reported, and the next round shows the state. */
  async showJob(): Promise<void> {
    try {
      await this.#deps.initialization.show();
    } catch (error) {
      this.#deps.onError(ensureError(error));
    }
  }

  /** Removes the host from the list. @throws NO_ETCD: its keys then expire by themselves. */
  async stop(): Promise<void> {
    await this.#deps.publication.stop();
  }

  /** Closes the connections to etcd, when no lease is needed any more. */
  close(): void {
    this.#deps.client.close();
  }
}
