import { randomUUID } from "node:crypto";
import { PserverError } from "../../protocol/errors.js";
import { checkJobName } from "../../protocol/names.js";
import { showListed } from "../../transport/connection.js";
import { EtcdClient } from "./etcd-client.js";
/** Port of etcd, and of the broker, where an address names none. */
const ETCD_PORT = 2379;
const BROKER_PORT = 4222;
const ENDPOINTS_MAX = 16;
const ADDRESS_BYTES_MAX = 255;
const PREFIX = /^(?:\/[A-Za-z0-9._-]{1,64}){1,4}$/;
const BROKER_URL = /^(?:(nats|tls|ws|wss):\/\/)?(?:[^@/\s]*@)?([^@/\s?#]+)\/?$/i;
const SPACE_ID = /^[0-9a-f-]{8,64}$/;
/** The keys in etcd, the same for every client: see "Discovery through etcd" in docs/reference/protocol.md. */
export class EtcdKeys {
    /** Number of hosts that are published, in decimal. */
    desired;
    /** Prefix of the keys of published hosts and of `job`. */
    servers;
    /** The job that the hosts serve. */
    job;
    /** Held with the lease of the trainer that is selected to initialize. */
    lock;
    /** "1" once the job is initialized. */
    done;
    /** Tells this etcd and prefix from any other. */
    id;
    /** Prefix of the keys of all leases of the job. */
    leases;
    /** @throws BAD_VALUE for an invalid prefix, BAD_NAME for an invalid job. */
    constructor(job, prefix = "") {
        checkPrefix(prefix);
        this.desired = `${prefix}/ps_desired`;
        this.servers = `${prefix}/ps/`;
        this.job = `${prefix}/ps/job`;
        this.lock = `${prefix}/init_ps/lock`;
        this.done = `${prefix}/init_ps/done`;
        this.id = `${prefix}/ps_id`;
        this.leases = `${prefix}/leases/${checkJobName(job)}/`;
    }
    /** The index in the key of a published host; undefined for another key. */
    serverIndex(key) {
        const index = key.startsWith(this.servers) ? key.slice(this.servers.length) : "";
        return /^(?:0|[1-9]\d{0,5})$/.test(index) ? Number(index) : undefined;
    }
}
/**
 * Parses the addresses of one etcd, from a list or from text with commas; returns each as `http://host:port`.
 * @throws BAD_VALUE unless each is `http://` or `https://`, host and port only, all alike.
 */
export function parseEtcdEndpoints(given) {
    const entries = toList(given);
    const endpoints = entries.map((entry) => {
        const url = URL.canParse(entry) ? new URL(entry) : undefined;
        const bare = url?.pathname === "/" && !/[?#@]/.test(entry) && url.hostname !== "";
        if (url === undefined || !bare || !/^https?:$/.test(url.protocol)) {
            throw badValue("etcd address", "http://host:port or https://host:port", showListed(given, entry));
        }
        // URL drops the default ports of HTTP, although a user may have named one explicitly.
        const port = url.port || (/:\d+\/?$/.exec(entry)?.[0].replace(/\D/g, "") ?? ETCD_PORT);
        return `${url.protocol}//${url.hostname}:${port}`;
    });
    if (endpoints.length === 0 || endpoints.length > ENDPOINTS_MAX) {
        throw badValue("etcd addresses", `1 to ${ENDPOINTS_MAX}`, String(endpoints.length));
    }
    if (new Set(endpoints.map((endpoint) => new URL(endpoint).protocol)).size > 1) {
        throw badValue("etcd addresses", "all http:// or all https://", endpoints.join(","));
    }
    return endpoints;
}
/** Checks a prefix and returns it. @throws BAD_VALUE unless it is empty or like `/a` or `/a/b`. */
export function checkPrefix(prefix) {
    if (prefix === "" || PREFIX.test(prefix))
        return prefix;
    throw badValue("etcd prefix", "nothing, or names with a / before each", prefix);
}
/**
 * Returns the broker's addresses for publication: with scheme and port, without credentials.
 * @throws BAD_VALUE for an invalid address.
 */
export function toAdvertised(given) {
    const urls = toList(given).map((entry) => {
        const match = BROKER_URL.exec(entry);
        const address = match?.[2];
        if (match === null || address === undefined || entry.length > ADDRESS_BYTES_MAX) {
            throw badValue("broker address", "nats://host:port", showListed(given, entry));
        }
        const port = /:\d+$/.test(address) ? "" : `:${BROKER_PORT}`;
        return `${(match[1] ?? "nats").toLowerCase()}://${address}${port}`;
    });
    if (urls.length === 0)
        throw badValue("broker addresses", "at least one", "none");
    return urls;
}
/** Checks the identity in the entry of {@link EtcdKeys.id}, and returns it. @throws BAD_VALUE if it cannot be one. */
export function checkSpaceId(id, key) {
    if (SPACE_ID.test(id))
        return id;
    throw badValue(`etcd key ${key}`, "an identity of 8 to 64 hexadecimal digits and -", id);
}
function toList(given) {
    const list = typeof given === "string" ? given.split(",") : given;
    return list.map((entry) => entry.trim()).filter((entry) => entry !== "");
}
function badValue(what, expected, given) {
    const received = JSON.stringify(given.slice(0, ADDRESS_BYTES_MAX).toWellFormed());
    return new PserverError("BAD_VALUE", `${what}: expected ${expected}; received ${received}`, {
        expected,
        received,
    });
}
const TRIES_MAX = 8;
/**
 * Connects to etcd and reads its identity, which the first to connect writes. An address identifies
 * nothing: `127.0.0.1` is another etcd on every machine.
 * @throws BAD_VALUE for invalid settings, NO_ETCD if no address answers in time, DENIED,
 * JOB_EXISTS if hosts of another job are published there.
 */
export async function openEtcdSpace(settings, job, timeoutMs) {
    const keys = new EtcdKeys(job, settings.prefix);
    const endpoints = parseEtcdEndpoints(settings.endpoints);
    const client = await EtcdClient.open({ endpoints, timeoutMs });
    try {
        checkPublishedJob((await client.read(keys.job))?.value, job, keys);
        return { client, keys, id: await identify(client, keys.id) };
    }
    catch (error) {
        client.close();
        throw error;
    }
}
async function identify(client, key) {
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
        const found = await client.read(key);
        if (found !== undefined)
            return checkSpaceId(found.value, key);
        const id = randomUUID();
        if (await client.swap([{ key, revision: undefined }], [{ kind: "put", key, value: id }]))
            return id;
    }
    throw new PserverError("BUSY", `etcd key ${key}: changed by others ${TRIES_MAX} times in a row`, {
        key,
    });
}
/** Checks that `published` is this job, or absent. @throws JOB_EXISTS if it is another. */
export function checkPublishedJob(published, job, { job: key }) {
    if (published === undefined || published === job)
        return;
    throw new PserverError("JOB_EXISTS", `etcd key ${key}: hosts of job ${JSON.stringify(published)} are alive under this prefix; ` +
        `received job ${JSON.stringify(job)}. Give each job an --etcd-prefix of its own.`, { expected: published, received: job });
}
//# sourceMappingURL=etcd-space.js.map