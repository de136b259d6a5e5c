import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/index.js";
import { Repeater } from "../concurrent.js";
import { trainerKey } from "../lifecycle/lock.js";
import { jobEntry } from "../lifecycle/machine.js";
import { checkPublishedJob } from "./etcd-space.js";
const TRIES_MAX = 8;
/**
 * Shows the job's lifecycle in etcd: `/init_ps/lock` is attached to the lease of the selected trainer,
 * `/init_ps/done` is "1" once the job is initialized. Nothing is decided by these keys. A writer that knows an older
 * entry of the job cannot overwrite a newer one's keys: they are read before the job's entry, and swapped after.
 */
export class InitializationKeys {
    #space;
    #bucket;
    constructor(space, bucket) {
        this.#space = space;
        this.#bucket = bucket;
    }
    /** Updates the keys from the job's entry. @throws NO_ETCD, BUSY, and as `KvBucket` does. */
    async show() {
        const { client, keys } = this.#space;
        for (let tries = 1; tries <= TRIES_MAX; tries++) {
            const [lock, done] = [await client.read(keys.lock), await client.read(keys.done)];
            const job = await jobEntry.read({ bucket: this.#bucket });
            const writes = [...(await this.#lockWrites(job, lock)), ...this.#doneWrites(job, done)];
            const guards = [
                { key: keys.lock, revision: lock?.revision },
                { key: keys.done, revision: done?.revision },
            ];
            if (writes.length === 0 || (await client.swap(guards, writes)))
                return;
        }
        throw new PserverError("BUSY", `etcd key ${keys.lock}: changed ${TRIES_MAX} times in a row`, {
            key: keys.lock,
        });
    }
    async #lockWrites(job, lock) {
        const { client, keys } = this.#space;
        const { trainer, session, epoch } = job.context;
        const holder = job.state === "initializing"
            ? await client.read(`${keys.leases}${trainerKey(trainer)}`)
            : undefined;
        // No trainer is selected, or the selected one is not alive.
        if (holder === undefined)
            return lock === undefined ? [] : [{ kind: "remove", key: keys.lock }];
        const value = JSON.stringify({ trainer, session, epoch });
        if (lock?.value === value && lock.lease === holder.lease)
            return [];
        return [{ kind: "put", key: keys.lock, value, lease: holder.lease }];
    }
    #doneWrites(job, done) {
        const { keys } = this.#space;
        if (job.state === "ready")
            return done?.value === "1" ? [] : [{ kind: "put", key: keys.done, value: "1" }];
        return done === undefined ? [] : [{ kind: "remove", key: keys.done }];
    }
}
/** Lease times that a starting host waits until the keys of a dead host have expired. */
const START_LEASES = 4;
/**
 * Keeps one host in etcd's list of servers: `/ps/<i>` with the broker's addresses, the job's name and
 * the number of hosts. All of these keys are attached to one lease, so that they expire with the host. A
 * shared key that expires with a dead host is written again by any other within a third of a lease time.
 */
export class Publication {
    #deps;
    #lease;
    /** Whether this host was ever in the list, so that it knows which job is published there. */
    #listed = false;
    #repeater = new Repeater(() => this.#round());
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Publishes the host and keeps it published until {@link Publication.stop}.
     * @throws JOB_EXISTS if hosts of another job are published there, NO_ETCD, BUSY.
     */
    async start() {
        const { leaseMs, job } = this.#deps;
        const until = performance.now() + START_LEASES * Math.max(leaseMs, 1_000);
        while (!(await this.#publish())) {
            if (performance.now() > until) {
                throw new PserverError("BUSY", `job ${job}: the keys in etcd kept changing while the host started`, { job });
            }
            await delay(leaseMs / 10);
        }
        await this.#deps.initialization.show();
        await this.#repeater.start(leaseMs / 3);
    }
    /** Shows the state of the job at once; a failure is reported, and the next round shows the state. */
    async showJob() {
        try {
            await this.#deps.initialization.show();
        }
        catch (error) {
            this.#deps.onError(ensureError(error));
        }
    }
    /** Ends the publication and revokes its lease. @throws NO_ETCD: the keys then expire by themselves. */
    async stop() {
        await this.#repeater.stop();
        const lease = this.#lease;
        this.#lease = undefined;
        if (lease !== undefined)
            await this.#deps.client.revoke(lease);
    }
    async #round() {
        try {
            await this.#deps.probe.reach();
            await this.#publish();
            await this.#deps.initialization.show();
        }
        catch (error) {
            this.#deps.onError(ensureError(error));
        }
        return this.#deps.leaseMs / 3;
    }
    /** Tries once to publish; false if keys of dead hosts have not expired yet or somebody else wrote in between. */
    async #publish() {
        const { client, keys } = this.#deps;
        const lease = await this.#liveLease();
        const published = await this.#read();
        const { servers, job } = published;
        checkPublishedJob(job?.value, this.#deps.job, keys);
        // Hosts are listed, but no job: the host that wrote it has just died, and another one will write it again.
        if (job === undefined && servers.length > 0 && !this.#listed)
            return false;
        const change = this.#changes(published, lease);
        if (change.writes.length > 0 && !(await client.swap(change.guards, change.writes))) {
            return false;
        }
        this.#listed = true;
        return true;
    }
    /** Extends the present lease, or makes a new one. */
    async #liveLease() {
        const { client, leaseMs } = this.#deps;
        if (this.#lease === undefined || !(await client.keepAlive(this.#lease))) {
            this.#lease = await client.grant(leaseMs);
        }
        return this.#lease;
    }
    async #read() {
        const { client, keys } = this.#deps;
        const desired = await client.read(keys.desired);
        const found = await client.list(keys.servers);
        return {
            servers: found.filter(({ key }) => keys.serverIndex(key) !== undefined),
            job: found.find(({ key }) => key === keys.job),
            desired,
        };
    }
    #changes({ servers, job, desired }, lease) {
        const { keys, urls } = this.#deps;
        const guards = [];
        const writes = [];
        const write = (key, value, found) => {
            guards.push({ key, revision: found?.revision });
            writes.push({ kind: "put", key, value, lease });
        };
        const isListed = servers.some((entry) => entry.lease === lease);
        if (!isListed) {
            const taken = new Set(servers.map(({ key }) => keys.serverIndex(key)));
            let index = 0;
            while (taken.has(index))
                index++;
            write(`${keys.servers}${index}`, urls.join(","), undefined);
        }
        if (job === undefined)
            write(keys.job, this.#deps.job, undefined);
        const count = String(servers.length + (isListed ? 0 : 1));
        if (desired?.value !== count)
            write(keys.desired, count, desired);
        return { guards, writes };
    }
}
//# sourceMappingURL=etcd-publication.js.map