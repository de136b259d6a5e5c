import { PserverError } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { jobRecord } from "../lifecycle/lifecycle-record.ts";
import type { Lifecycle } from "../lifecycle/machine.ts";
import { trainerKey } from "../lifecycle/record-format.ts";
import type { EtcdEntry, EtcdWrite } from "./etcd-client.ts";
import type { EtcdSpace } from "./etcd-space.ts";

const TRIES_MAX = 8;

/**
 * Shows the job's lifecycle in etcd: `/init_ps/lock` is attached to the lease of the selected trainer,
 * `/init_ps/done` is "1" once the job is initialized. Nothing is decided by these keys. A writer with an
 * older record cannot overwrite a newer one: the keys are read before the record, and swapped after.
 */
export class InitializationKeys {
  readonly #space: EtcdSpace;
  readonly #bucket: KvBucket;

  constructor(space: EtcdSpace, bucket: KvBucket) {
    this.#space = space;
    this.#bucket = bucket;
  }

  /** Updates the keys from the job's record; @throws NO_ETCD, BUSY, and as `KvBucket` does. */
  async show(): Promise<void> {
    const { client, keys } = this.#space;
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const [lock, done] = [await client.read(keys.lock), await client.read(keys.done)];
      const job = await jobRecord.read({ bucket: this.#bucket });
      const writes = [...(await this.#lockWrites(job, lock)), ...this.#doneWrites(job, done)];
      const guards = [
        { key: keys.lock, revision: lock?.revision },
        { key: keys.done, revision: done?.revision },
      ];
      if (writes.length === 0 || (await client.swap(guards, writes))) return;
    }
    throw new PserverError("BUSY", `etcd key ${keys.lock}: changed ${TRIES_MAX} times in a row`, {
      key: keys.lock,
    });
  }

  async #lockWrites(job: Lifecycle, lock: EtcdEntry | undefined): Promise<EtcdWrite[]> {
    const { client, keys } = this.#space;
    const { trainer, session, epoch } = job.context;
    const holder =
      job.state === "initializing"
        ? await client.read(`${keys.leases}${trainerKey(trainer)}`)
        : undefined;
    // No trainer is selected, or the selected one is not alive.
    if (holder === undefined) return lock === undefined ? [] : [{ kind: "remove", key: keys.lock }];
    const value = JSON.stringify({ trainer, session, epoch });
    if (lock?.value === value && lock.lease === holder.lease) return [];
    return [{ kind: "put", key: keys.lock, value, lease: holder.lease }];
  }

  #doneWrites(job: Lifecycle, done: EtcdEntry | undefined): EtcdWrite[] {
    const { keys } = this.#space;
    if (job.state === "ready")
      return done?.value === "1" ? [] : [{ kind: "put", key: keys.done, value: "1" }];
    return done === undefined ? [] : [{ kind: "remove", key: keys.done }];
  }
}
