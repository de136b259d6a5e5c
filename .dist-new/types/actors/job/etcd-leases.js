import { PserverError } from "../../protocol/index.js";
import { parseLease, settleLease, } from "./leases.js";
/**
 * Leases in etcd: a key for each, attached to a lease of etcd's own. It lasts for the lease time rounded
 * up to seconds, and at least for etcd's minimum.
 *
 * They are claimed, renewed and their keys listed only while the broker answers. A host that has lost the
 * broker can serve nothing, so its leases must end; and while the broker is down trainers cannot renew
 * theirs, so a missing lease means nothing. Leases in the broker have both properties by nature.
 */
export class EtcdLeases {
    #client;
    #root;
    #leaseMs;
    #probe;
    /** `root`: prefix of all keys; it ends in a slash. */
    constructor(client, root, leaseMs, probe) {
        this.#client = client;
        this.#root = root;
        this.#leaseMs = leaseMs;
        this.#probe = probe;
    }
    async claim(key, value) {
        await this.#probe.reach();
        return await settleLease(key, async () => {
            const held = await this.#find(key);
            if (held === undefined)
                return (await this.#create(key, value)) || undefined;
            if (held.value.owner !== value.owner)
                return false;
            // A holder that claims its lease again relies on the whole lease time.
            return (await this.#client.keepAlive(held.entry.lease)) || undefined;
        });
    }
    async renew(key, value) {
        await this.#probe.reach();
        return await settleLease(key, async () => {
            const held = await this.#find(key);
            if (held?.value.owner !== value.owner)
                return false;
            const { lease, revision, value: written } = held.entry;
            if (!(await this.#client.keepAlive(lease)))
                return undefined;
            const put = this.#put(key, value, lease);
            if (put.value === written)
                return true;
            return (await this.#client.swap([{ key: put.key, revision }], [put])) || undefined;
        });
    }
    async release(key, value) {
        const held = await this.#find(key);
        // The lease belongs to this claim alone: ending it does not affect later claims of the key.
        if (held?.value.owner === value.owner)
            await this.#client.revoke(held.entry.lease);
    }
    async read(key) {
        return (await this.#find(key))?.value;
    }
    async list(prefix) {
        const entries = await this.#client.list(this.#root + prefix);
        return new Map(entries.map((entry) => {
            const key = entry.key.slice(this.#root.length);
            return [key, readLease(key, entry)];
        }));
    }
    async keys(prefix) {
        await this.#probe.reach();
        const keys = await this.#client.keys(this.#root + prefix);
        return new Set(keys.map((key) => key.slice(this.#root.length)));
    }
    async #create(key, value) {
        const lease = await this.#client.grant(this.#leaseMs);
        const put = this.#put(key, value, lease);
        if (await this.#client.swap([{ key: put.key, revision: undefined }], [put]))
            return true;
        await this.#client.revoke(lease);
        return false;
    }
    #put(key, value, lease) {
        return { kind: "put", key: this.#root + key, value: JSON.stringify(value), lease };
    }
    async #find(key) {
        const entry = await this.#client.read(this.#root + key);
        return entry && { entry, value: readLease(key, entry) };
    }
}
function readLease(key, { value, lease }) {
    if (lease === "0") {
        throw new PserverError("BAD_MESSAGE", `lease ${key}: the key in etcd has no lease`, {
            key,
        });
    }
    return parseLease(key, parseJson(key, value));
}
function parseJson(key, text) {
    try {
        return JSON.parse(text);
    }
    catch (cause) {
        const received = JSON.stringify(text.slice(0, 60));
        const message = `lease ${key}: expected JSON; received ${received}`;
        throw new PserverError("BAD_MESSAGE", message, { key }, { cause });
    }
}
//# sourceMappingURL=etcd-leases.js.map