import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { checkBrokerVersion } from "../protocol/broker-version.js";
import { PserverError } from "../protocol/errors.js";
import { packageRoot } from "./broker-config.js";
/**
 * Returns the directory where `pserver setup` installs a broker for this user: `nats-pserver/bin` in
 * `XDG_DATA_HOME`, or in `~/.local/share` if that is not set.
 */
export function userBrokerDirectory(environment) {
    const { XDG_DATA_HOME: data, HOME: home } = environment;
    // The XDG specification says that a relative path is to be ignored.
    const base = data?.startsWith("/") ? data : join(home || homedir(), ".local", "share");
    return join(base, "nats-pserver", "bin");
}
const PROGRAM = "nats-server";
/** Debian installs the broker in a directory that is not in the PATH of ordinary users. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
const VERSION_TIMEOUT_MS = 10_000;
const run = promisify(execFile);
/**
 * Finds the broker to start. Searches in this order: `PSERVER_NATS_SERVER`, `.tools/bin` of the package, the
 * directory of `pserver setup`, `PATH`, the system's directories. Programs that are too old are skipped; the
 * one that `PSERVER_NATS_SERVER` names is used or refused.
 * @param root directory of the package.
 * @throws NO_BROKER if there is none, or the named one cannot be run.
 * @throws BROKER_TOO_OLD if all that were found are too old; ABORTED by `signal`.
 */
export async function findBroker(environment = process.env, signal, root = packageRoot()) {
    const named = environment["PSERVER_NATS_SERVER"];
    if (named !== undefined && named !== "") {
        const broker = { path: named, version: await readVersion(named, signal) };
        checkBrokerVersion(broker.version);
        return broker;
    }
    let tooOld;
    for (const path of candidates(environment, root)) {
        if (!(await isExecutable(path)))
            continue;
        const broker = { path, version: await readVersion(path, signal) };
        try {
            checkBrokerVersion(broker.version);
            return broker;
        }
        catch (error) {
            tooOld ??= error;
        }
    }
    if (tooOld !== undefined)
        throw tooOld;
    throw new PserverError("NO_BROKER", `no ${PROGRAM} found in PSERVER_NATS_SERVER, ${userBrokerDirectory(environment)} or PATH`, { expected: PROGRAM });
}
function candidates(environment, root) {
    const directories = [
        join(root, ".tools", "bin"),
        userBrokerDirectory(environment),
        ...(environment["PATH"] ?? "").split(delimiter).filter((directory) => directory !== ""),
        ...SYSTEM_DIRECTORIES,
    ];
    return [...new Set(directories)].map((directory) => join(directory, PROGRAM));
}
async function isExecutable(path) {
    try {
        await access(path, constants.X_OK);
        return true;
    }
    catch {
        // Absent or not executable: the search goes on.
        return false;
    }
}
async function readVersion(path, signal) {
    let output;
    try {
        const options = { timeout: VERSION_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
        output = (await run(path, ["--version"], options)).stdout;
    }
    catch (cause) {
        if (signal?.aborted === true) {
            throw new PserverError("ABORTED", `running ${path} --version was aborted`, { path });
        }
        throw new PserverError("NO_BROKER", `cannot run ${path} --version`, { path }, { cause });
    }
    const version = /v(\d+\.\d+\.\d+\S*)/.exec(output)?.[1];
    if (version !== undefined)
        return version;
    throw new PserverError("NO_BROKER", `${path} is not nats-server: expected a version, received ${JSON.stringify(output.slice(0, 80))}`, { path, received: output.slice(0, 80) });
}
//# sourceMappingURL=find-broker.js.map