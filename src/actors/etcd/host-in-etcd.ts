import { type EtcdSettings, ensureError, type PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import type { BrokerProbe } from "../leases/broker-bound-leases.ts";
import type { EtcdSpace } from "./etcd-space.ts";
import { InitializationKeys } from "./initialization-keys.ts";
import { Publication } from "./publication.ts";

/** What a {@link HostInEtcd} works with. */
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

/** What one host shows in etcd to those who look there: itself, and how far the job is initialized. */
export class HostInEtcd {
  readonly #space: EtcdSpace;
  readonly #initialization: InitializationKeys;
  readonly #publication: Publication;
  readonly #onError: (error: PserverError) => void;

  constructor(options: HostInEtcdOptions) {
    const { space, bucket, job, urls, leaseMs, probe, onError } = options;
    this.#space = space;
    this.#onError = onError;
    this.#initialization = new InitializationKeys(space, bucket);
    this.#publication = new Publication({
      client: space.client,
      keys: space.keys,
      ...{ job, urls, leaseMs, probe, onError },
      alsoShow: () => this.#initialization.show(),
    });
  }

  /** Publishes the host until {@link HostInEtcd.stop}; throws as `Publication.start`. */
  async start(): Promise<void> {
    await this.#publication.start();
  }

  /** Shows at once how far the job is; what fails is told, and shown in the next round. */
  async showJob(): Promise<void> {
    try {
      await this.#initialization.show();
    } catch (error) {
      this.#onError(ensureError(error));
    }
  }

  /** Takes the host out of the list. @throws NO_ETCD: its keys then end by themselves. */
  async stop(): Promise<void> {
    await this.#publication.stop();
  }

  /** Closes the connections to etcd, when no lease is needed any more. */
  close(): void {
    this.#space.client.close();
  }
}
