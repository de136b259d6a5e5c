import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { AuthorizationError, TimeoutError, UserAuthenticationExpiredError, } from "@nats-io/transport-node";
import { ensureError, PserverError } from "../protocol/errors.js";
import { ID_BYTES_MAX } from "../protocol/limits.js";
import { JOB_DEFAULT } from "../protocol/names.js";
import { JobSubjects } from "../protocol/subjects.js";
import { BufferPool } from "../transport/buffers.js";
import { connectForBulk } from "../transport/bulk-transport.js";
import { showUrl } from "../transport/connection.js";
import { Backoff, Calls, Deadline } from "./calls/calls.js";
import { Client, ClientParts } from "./client.js";
import { nonEmpty, resolveConnection, } from "./wire/broker-settings.js";
import { NatsWire } from "./wire/wire.js";
/** Joins a job and returns the client, which owns the connections from now on. */
async function joinJob(options) {
    const { connections, job, trainer, inbox, deadline, onFallback } = options;
    const subjects = new JobSubjects(job);
    const calls = new Calls();
    const fail = (error) => {
        calls.fail(error);
        parts.stop();
    };
    const { values, control } = connections;
    const parts = new ClientParts({
        ...{ subjects, trainer, fail, onFallback },
        wire: NatsWire.open(values, processInbox(inbox), fail),
        control: NatsWire.open(control, processInbox(inbox), fail),
    });
    for (const connection of [values, control]) {
        connection.closed().then((error) => fail(connectionClosed(error)), (error) => fail(ensureError(error)));
    }
    await parts.session.join(deadline);
    return new Client({ connections: [values, control], subjects, trainer, calls, parts });
}
/**
 * Makes the inbox of one connection of this process: a second process of the trainer must not receive its messages, nor
 * one connection those of the other.
 */
function processInbox(inbox) {
    return `${inbox}.${randomUUID().slice(0, 8)}`;
}
function connectionClosed(cause) {
    if (!(cause instanceof Error))
        return new PserverError("CLOSED", "the client is closed");
    return new PserverError("NO_BROKER", `the connection to the broker is lost for good: ${cause.message}`, {}, { cause });
}
/** Time to reach the broker and a host. */
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * Connects to the broker, by two connections, and joins a job as a trainer. Tries again until `timeoutMs` (10 s) is
 * over, so that broker, host and trainers can be started in any order. Settings that are left out come
 * from `environment`; so a trainer that the launcher has started joins its job without any.
 *
 * @throws NO_BROKER, naming the address, if the broker does not answer; DENIED if it refuses the
 * credentials; NO_TLS if it offers no TLS, or none to trust, where `tls://` asks for it; NO_HOST if no host of the job answers; BAD_NAME for a wrong job or trainer.
 *
 * @example
 * const ps = await connect({ url: "nats://127.0.0.1:4222", job: "mnist" });
 * if (await ps.beginInit()) {
 *   await ps.initParam("w", { dtype: "float32", shape: [10, 784], data }, { learningRate: 0.1 });
 *   await ps.finishInit();
 * }
 * await ps.sendGrads({ w: gradient });
 * const [w] = await ps.getParams(["w"]);
 */
export async function connect(options = {}, environment = process.env) {
    const { job = nonEmpty(environment["PSERVER_JOB"]) ?? JOB_DEFAULT, trainer = nonEmpty(environment["PSERVER_TRAINER"]) ?? uniqueTrainer(), onFallback, } = options;
    const inbox = new JobSubjects(job).inbox(trainer);
    const deadline = Deadline.start("connect", options, CONNECT_TIMEOUT_MS);
    try {
        const name = `pserver ${job} ${trainer}`;
        const settings = resolveConnection({ ...options, name, inboxPrefix: inbox }, environment);
        const values = await connectBroker(settings, deadline);
        const opened = [values];
        try {
            const control = await connectBroker({ ...settings, name: `${name} control` }, deadline);
            opened.push(control);
            const connections = { values, control };
            return await joinJob({ connections, job, trainer, inbox, deadline, onFallback });
        }
        catch (error) {
            for (const connection of opened)
                await connection.close();
            throw error;
        }
    }
    finally {
        deadline.dispose();
    }
}
/**
 * Connects to the broker. Retries until the deadline, unless the credentials are refused.
 * @internal
 */
export async function connectBroker(settings, deadline) {
    const backoff = new Backoff();
    while (true) {
        try {
            return await connectOnce(settings, deadline);
        }
        catch (caught) {
            const delayMs = backoff.nextMs();
            if (caught instanceof PserverError)
                throw caught;
            if (isAuthError(caught))
                throw refused(settings, caught);
            if (!deadline.allows(delayMs))
                throw noBroker(settings, await reasonOf(caught, deadline));
            await deadline.sleep(delayMs);
        }
    }
}
/**
 * Returns the error to report. If an attempt that had all of the call's remaining time timed out, that is the
 * end of the call.
 */
async function reasonOf(caught, deadline) {
    if (!(caught instanceof TimeoutError))
        return caught;
    const rest = deadline.sleep(deadline.remainingMs + 1);
    return await rest.then(() => caught, (end) => end);
}
/** Connects once. A connection that comes too late is closed. */
async function connectOnce(settings, deadline) {
    const timeout = Math.max(1, Math.min(settings.timeout ?? Number.POSITIVE_INFINITY, deadline.remainingMs));
    const lending = { prefix: `${settings.inboxPrefix}.`, pool: new BufferPool() };
    const attempt = connectForBulk({ ...settings, timeout, lending });
    try {
        return await deadline.race(attempt);
    }
    catch (caught) {
        if (caught !== deadline.ended)
            throw caught;
        attempt.then((late) => late.close(), 
        // The attempt has failed as well, so there is nothing to close.
        () => { });
        const error = ensureError(caught);
        throw error.code === "TIMEOUT" ? noBroker(settings, error) : error;
    }
}
function uniqueTrainer() {
    const random = randomUUID().slice(0, 8);
    const tail = `-${process.pid}-${random}`;
    const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, "-");
    return `${host.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}
function isAuthError(error) {
    return (error instanceof AuthorizationError ||
        error instanceof UserAuthenticationExpiredError ||
        (error instanceof Error && isAuthError(error.cause)));
}
function addresses({ servers = [] }) {
    return (typeof servers === "string" ? [servers] : servers).map(showUrl);
}
function refused(settings, cause) {
    return new PserverError("DENIED", `the broker at ${addresses(settings).join(", ")} refuses the credentials: ${ensureError(cause).message}`, { servers: addresses(settings) }, { cause });
}
function noBroker(settings, cause) {
    return new PserverError("NO_BROKER", `no broker answers at ${addresses(settings).join(", ")} (${ensureError(cause).message}): start nats-server with JetStream there, or give its address as url or in PSERVER_URL`, { servers: addresses(settings) }, { cause });
}
//# sourceMappingURL=connect.js.map