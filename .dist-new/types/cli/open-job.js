import { hostname } from "node:os";
import { openAdmin, openStoreConnection, } from "../client/admin/job-admin.js";
import { connect } from "../client/connect.js";
import { resolveSettings } from "../client/wire/broker-settings.js";
import { ensureError, PserverError } from "../protocol/errors.js";
import { ID_BYTES_MAX } from "../protocol/limits.js";
import { orNoJetStream } from "../transport/broker-error.js";
import { toOverrides } from "./options/connection-options.js";
/**
 * Time to reach the broker, unless NATS_TIMEOUT asks for more: a command with a long `--timeout` must not wait
 * that long for a broker that is not there.
 */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * Default of `--timeout` in commands that change what the broker stores of a job: the longest wait for one
 * answer.
 */
export const STORE_TIMEOUT_MS = 30_000;
/**
 * Runs `use` with a connection as hosts of the job have one, for the JetStream API, and the id of its inbox.
 * @throws NO_BROKER or DENIED if the broker cannot be used, NO_JETSTREAM if it has none; what `use` throws.
 */
export async function withStore(context, flags, use) {
    const host = commandId();
    const connection = await openStoreConnection(adminConnection(context, flags), host);
    try {
        return await use(connection, host);
    }
    catch (error) {
        throw orNoJetStream(ensureError(error), connection);
    }
    finally {
        await connection.close();
    }
}
/** Returns the settings with which a command connects to the broker of its job. */
export function adminConnection(context, flags) {
    const { environment, signal } = context;
    const connectTimeoutMs = connectTimeoutMsOf(context, flags);
    return { job: flags.job, broker: toOverrides(flags), environment, connectTimeoutMs, signal };
}
/** Returns how long a command waits for the broker, in milliseconds. */
export function connectTimeoutMsOf({ environment }, flags) {
    const { timeoutMs } = resolveSettings(toOverrides(flags), environment);
    return Math.min(flags.timeout, Math.max(CONNECT_TIMEOUT_MS, timeoutMs));
}
/** Makes an id that no other process of this machine has now; cuts a long name of the machine. */
export function commandId(machine = hostname()) {
    const tail = `-${process.pid}`;
    const host = machine.replaceAll(/[^A-Za-z0-9-]/g, "-");
    return `${`cli-${host}`.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}
/**
 * Runs `use` with the jobs that the broker holds.
 * @throws DENIED for a user who may not use the JetStream API; NO_BROKER, TIMEOUT; what `use` throws.
 */
export async function withJobs(context, flags, use) {
    // Loaded here, so that other commands start faster.
    const { openJetStream } = await import("../transport/jetstream.js");
    const { listJobStreams } = await import("../actors/job/open-job.js");
    return await withStore(context, flags, async (connection) => {
        const client = openJetStream(connection, flags.timeout);
        return await use(await listJobStreams(await client.jetstreamManager(false)), connection);
    });
}
/**
 * Lists the names of the jobs that the broker holds.
 * @throws as {@link withJobs}.
 */
export async function listJobs(context, flags) {
    return await withJobs(context, flags, (jobs) => jobs.map(({ job }) => job));
}
/** Time for the broker to list its jobs, which only adds to an error message. */
const CATALOG_TIMEOUT_MS = 2_000;
/**
 * Runs `use` with questions to the hosts of a job, without joining it.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export async function withAdmin(context, flags, use) {
    try {
        const admin = await openAdmin({
            ...adminConnection(context, flags),
            trainer: flags.trainer ?? commandId(),
            timeoutMs: flags.timeout,
        });
        return await use(admin).finally(() => admin.close());
    }
    catch (error) {
        throw await namingOtherJobs(context, flags, error);
    }
}
/**
 * Runs `use` with a client that has joined the job as a trainer.
 * @throws as `connect` does; what `use` throws.
 */
export async function withTrainer(context, flags, use) {
    const options = {
        ...toOverrides(flags),
        job: flags.job,
        trainer: flags.trainer ?? commandId(),
        timeoutMs: connectTimeoutMsOf(context, flags),
        signal: context.signal,
    };
    const client = await connect(options, context.environment).catch(async (error) => {
        throw await namingOtherJobs(context, flags, error);
    });
    try {
        return await use(client);
    }
    finally {
        await client.close();
    }
}
/** Returns the error; adds to NO_HOST the jobs that the broker holds. */
async function namingOtherJobs(context, flags, error) {
    if (!(error instanceof PserverError) || error.code !== "NO_HOST")
        return error;
    try {
        const jobs = await listJobs(context, { ...flags, timeout: CATALOG_TIMEOUT_MS });
        const held = jobs.includes(flags.job)
            ? `the broker holds job ${flags.job}, but no host of it runs`
            : `the broker holds ${jobs.length === 0 ? "no job" : `these jobs: ${jobs.join(", ")}`}`;
        const details = { ...error.details, jobs };
        return new PserverError("NO_HOST", `${error.message}; ${held}`, details, { cause: error });
    }
    catch {
        // A user who may not use the JetStream API gets the error as it was.
        return error;
    }
}
//# sourceMappingURL=open-job.js.map