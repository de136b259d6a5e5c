import { PserverError } from "../../protocol/index.js";
/**
 * Turns off the package's own retries: this client retries at the next address, and a circuit breaker would outlast a
 * lease.
 */
const NO_POLICY = {
    execute: async (run) => await run({ signal: new AbortController().signal }),
};
const GRPC_OPTIONS = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 500,
};
const MS_PER_SECOND = 1_000;
/** Matches etcd's own refusals, for which the package has no class. */
const DENIED = /permission denied|user name is empty|auth(entication|orization)/i;
/**
 * A small part of etcd's interface, with typed errors and bounded calls: each address is tried once,
 * beginning with the one that answered last. Reads see every write that was answered before they began.
 *
 * Every method throws NO_ETCD if no address answers in time, and DENIED. A write that ended in
 * NO_ETCD may have happened or may yet happen.
 */
export class EtcdClient {
    endpoints;
    #module;
    #clients;
    #bound;
    #preferred = 0;
    #lost = false;
    #onTurn = () => undefined;
    constructor(endpoints, module, clients, bound) {
        this.endpoints = endpoints;
        this.#module = module;
        this.#clients = clients;
        this.#bound = bound;
    }
    /** Loads the etcd package and makes a client; nothing is connected before the first call. */
    static async open(options) {
        const { endpoints, timeoutMs } = options;
        const module = await import("etcd3");
        const bound = { tryMs: 0 };
        const clients = endpoints.map((hosts) => new module.Etcd3({
            hosts,
            defaultCallOptions: () => ({ deadline: Date.now() + bound.tryMs }),
            grpcOptions: GRPC_OPTIONS,
            faultHandling: { global: NO_POLICY, host: () => NO_POLICY },
        }));
        const client = new EtcdClient(endpoints, module, clients, bound);
        client.limit(timeoutMs);
        return client;
    }
    /** Calls `onTurn` with an error when no address answers any more, and with undefined when one does again. */
    watch(onTurn) {
        this.#onTurn = onTurn;
    }
    /** Sets how long a call may take, for all addresses together. */
    limit(timeoutMs) {
        this.#bound.tryMs = Math.ceil(timeoutMs / this.endpoints.length);
    }
    /** The entry of a key; undefined if there is none. */
    async read(key) {
        return await this.#call(`reading ${key}`, async ({ kv }) => {
            const { kvs } = await kv.range({ key: Buffer.from(key) });
            return kvs[0] && toEntry(kvs[0]);
        });
    }
    /** Every key that begins with `prefix`, which is not empty, in order. */
    async list(prefix) {
        return await this.#range(prefix, false);
    }
    /** Lists the keys as {@link EtcdClient.list} does, without their values. */
    async keys(prefix) {
        return (await this.#range(prefix, true)).map(({ key }) => key);
    }
    /**
     * Makes all writes atomically if all guards hold, and returns true. Makes none and returns false if a guard does
     * not hold or a lease has ended.
     */
    async swap(guards, writes) {
        const compare = guards.map(toCompare);
        const success = writes.map(toRequest);
        return await this.#call("writing", async ({ kv }) => {
            try {
                return (await kv.txn({ compare, success })).succeeded;
            }
            catch (error) {
                if (error instanceof this.#module.EtcdLeaseInvalidError)
                    return false;
                throw error;
            }
        });
    }
    /** Makes a lease, which lasts for `leaseMs` rounded up to seconds unless it is kept alive; returns its id. */
    async grant(leaseMs) {
        return await this.#call("asking for a lease", async ({ leaseClient }) => {
            return (await leaseClient.leaseGrant({ TTL: Math.ceil(leaseMs / MS_PER_SECOND) })).ID;
        });
    }
    /** Extends a lease by its time from now on; false if it has ended. */
    async keepAlive(lease) {
        return await this.#call("renewing a lease", async ({ leaseClient }) => {
            const stream = await leaseClient.leaseKeepAlive();
            try {
                const ttl = await new Promise((resolve, reject) => {
                    stream.on("data", (reply) => resolve(reply.TTL));
                    // Unlike for calls, the package gives gRPC's errors of streams no class.
                    stream.on("error", (error) => reject(this.#module.castGrpcError(error)));
                    stream.on("end", () => reject(new this.#module.GRPCUnavailableError("stream ended")));
                    stream.write({ ID: lease });
                });
                return Number(ttl) > 0;
            }
            finally {
                stream.end();
            }
        });
    }
    /** Ends a lease and removes all keys attached to it; does nothing if it has ended. */
    async revoke(lease) {
        await this.#call("ending a lease", async ({ leaseClient }) => {
            try {
                await leaseClient.leaseRevoke({ ID: lease });
            }
            catch (error) {
                if (!(error instanceof this.#module.EtcdLeaseInvalidError))
                    throw error;
            }
        });
    }
    /** Closes all connections; calls under way fail. */
    close() {
        for (const client of this.#clients)
            client.close();
    }
    async #range(prefix, keysOnly) {
        return await this.#call(`listing ${prefix}`, async ({ kv }) => {
            const { kvs } = await kv.range({
                key: Buffer.from(prefix),
                range_end: prefixEnd(prefix),
                keys_only: keysOnly,
            });
            return kvs.map(toEntry);
        });
    }
    async #call(action, run) {
        let last;
        const first = this.#preferred;
        for (let i = 0; i < this.#clients.length; i++) {
            const at = (first + i) % this.#clients.length;
            try {
                const result = await run(this.#clients[at]);
                this.#preferred = at;
                this.#turn(undefined);
                return result;
            }
            catch (error) {
                last = this.#toError(error, action);
                if (last.code !== "NO_ETCD")
                    throw last;
            }
        }
        this.#turn(last);
        throw last;
    }
    #turn(lost) {
        if (this.#lost === (lost !== undefined))
            return;
        this.#lost = lost !== undefined;
        this.#onTurn(lost);
    }
    #toError(error, action) {
        if (error instanceof PserverError)
            return error;
        const text = error instanceof Error ? error.message : String(error);
        const where = this.endpoints.join(", ");
        const details = { endpoints: this.endpoints };
        const cause = { cause: error };
        const { ClientClosedError, EtcdError, GRPCGenericError, GRPCUnauthenticatedError } = this.#module;
        if (error instanceof ClientClosedError) {
            return new PserverError("CLOSED", `etcd, ${action}: the client is closed`, details, cause);
        }
        if (error instanceof GRPCUnauthenticatedError || DENIED.test(text)) {
            return new PserverError("DENIED", `etcd at ${where}, ${action}: ${text}`, details, cause);
        }
        if (error instanceof GRPCGenericError || error instanceof EtcdError) {
            const message = `etcd at ${where} does not answer, ${action}: ${text}`;
            return new PserverError("NO_ETCD", message, details, cause);
        }
        return new PserverError("INTERNAL", `etcd, ${action}: ${text}`, details, cause);
    }
}
function toEntry(found) {
    return {
        key: found.key.toString(),
        value: found.value.toString(),
        revision: found.mod_revision,
        lease: found.lease,
    };
}
function toCompare({ key, revision }) {
    const common = { key: Buffer.from(key), result: "Equal" };
    return revision === undefined
        ? { ...common, target: "Create", create_revision: 0 }
        : { ...common, target: "Mod", mod_revision: revision };
}
function toRequest(write) {
    const key = Buffer.from(write.key);
    if (write.kind === "remove")
        return { request_delete_range: { key } };
    const { value, lease } = write;
    const request = { key, value: Buffer.from(value) };
    return { request_put: lease === undefined ? request : { ...request, lease } };
}
/** Returns the key after the last one that begins with `prefix`, whose last character is below 0x7f. */
function prefixEnd(prefix) {
    const end = Buffer.from(prefix);
    end.writeUInt8((end.at(-1) ?? 0) + 1, end.length - 1);
    return end;
}
//# sourceMappingURL=etcd-client.js.map