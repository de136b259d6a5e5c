import { readFileSync } from "node:fs";
import { errnoCode } from "./file-errors.js";
const UNKNOWN = "unknown";
/** Identifies the process that has this pid now; undefined if none has. */
export function identifyProcess(pid) {
    const boot = readProc("/proc/sys/kernel/random/boot_id");
    if (boot === undefined)
        return isSignalable(pid) ? { pid, birth: UNKNOWN } : undefined;
    const stat = readProcessStat(pid);
    if (stat === undefined || stat.state === "Z" || stat.state === "X")
        return undefined;
    return { pid, birth: `${boot.slice(0, 8)}-${stat.startTicks ?? UNKNOWN}` };
}
/** Reads what the kernel says of a process; undefined if there is no such process, or no `/proc`. */
export function readProcessStat(pid) {
    const text = readProc(`/proc/${pid}/stat`);
    if (text === undefined)
        return undefined;
    // The name may contain spaces and parentheses: fields are counted from the last parenthesis.
    const end = text.lastIndexOf(")");
    const fields = text.slice(end + 2).split(" ");
    return {
        name: text.slice(text.indexOf("(") + 1, end),
        state: fields[0],
        parent: Number(fields[1]),
        group: Number(fields[2]),
        foregroundGroup: Number(fields[5]),
        startTicks: fields[19],
    };
}
/** Returns whether the process is still alive, and is not another one under the same pid. */
export function isAlive(identity) {
    return identifyProcess(identity.pid)?.birth === identity.birth;
}
function readProc(path) {
    try {
        return readFileSync(path, "utf8");
    }
    catch {
        // There is no such process, or no /proc; the caller handles both.
        return undefined;
    }
}
function isSignalable(pid) {
    try {
        process.kill(pid, 0);
        return true;
    }
    catch (error) {
        // EPERM: the process is alive and belongs to another user.
        return errnoCode(error) === "EPERM";
    }
}
//# sourceMappingURL=process-identity.js.map