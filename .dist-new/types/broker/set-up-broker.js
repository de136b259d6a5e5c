import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ensureError, PserverError } from "../protocol/errors.js";
import { readProcessStat } from "../system/process-identity.js";
import { packageRoot } from "./broker-config.js";
import { findBroker, userBrokerDirectory } from "./find-broker.js";
/**
 * Sends a signal to a process and to all its descendants, whatever process groups they have made. The process
 * itself gets it first, so that it does not start another one in place of one that ends. Without `/proc` only
 * the process gets it.
 */
export async function signalTree(pid, signal) {
    for (const each of [pid, ...(await descendants(pid))]) {
        try {
            process.kill(each, signal);
        }
        catch {
            // The process has ended, or belongs to another user.
        }
    }
}
/** Lists the descendants of a process, parents before their children. */
async function descendants(pid) {
    const children = new Map();
    for (const each of await readdir("/proc").catch(() => [])) {
        const parent = /^\d+$/.test(each) ? readProcessStat(Number(each))?.parent : undefined;
        if (parent === undefined)
            continue;
        children.set(parent, [...(children.get(parent) ?? []), Number(each)]);
    }
    const pids = [pid];
    for (const each of pids)
        pids.push(...(children.get(each) ?? []));
    return pids.slice(1);
}
/**
 * Returns the broker that {@link findBroker} finds. If none is new enough, builds one in the user's directory
 * with Go; where there is no Go, pip fetches a broker, and Python is installed for that if need be.
 * @throws NO_BROKER if that is not possible, naming what to install; the reason of `signal`, which ends
 *   all processes of the installation.
 */
export async function setUpBroker(options) {
    const { environment, signal, root = packageRoot() } = options;
    try {
        return await findBroker(environment, signal, root);
    }
    catch (thrown) {
        const error = ensureError(thrown);
        const isNamed = (environment["PSERVER_NATS_SERVER"] ?? "") !== "";
        if (isNamed || (error.code !== "NO_BROKER" && error.code !== "BROKER_TOO_OLD"))
            throw error;
    }
    await runScript(root, userBrokerDirectory(environment), options);
    return await findBroker(environment, signal, root);
}
async function runScript(root, directory, options) {
    options.signal.throwIfAborted();
    const script = join(root, "scripts", "provide-broker.sh");
    const child = spawn("bash", [script, directory], {
        // The script may ask for a password.
        stdio: ["inherit", "ignore", "pipe"],
        env: options.environment,
    });
    // What bash has started, such as Go, does not end with it. Ending a process group would not do: in a group
    // of its own the script could not ask for a password at the terminal, and `timeout` makes another group.
    const end = () => {
        if (child.pid !== undefined)
            void signalTree(child.pid, "SIGTERM");
    };
    options.signal.addEventListener("abort", end, { once: true });
    let last = "";
    createInterface({ input: child.stderr }).on("line", (line) => {
        last = line.replace(/^setup: /, "");
        options.onMessage(last);
    });
    const code = await new Promise((resolve, reject) => {
        child.once("close", resolve);
        child.once("error", (cause) => {
            const message = `cannot run bash, which sets the broker up: ${cause.message}`;
            reject(new PserverError("NO_BROKER", message, { program: "bash" }, { cause }));
        });
    }).finally(() => options.signal.removeEventListener("abort", end));
    options.signal.throwIfAborted();
    if (code !== 0)
        throw new PserverError("NO_BROKER", last || `the set-up ended with ${code}`);
}
//# sourceMappingURL=set-up-broker.js.map