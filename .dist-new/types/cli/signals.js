import { once, setMaxListeners } from "node:events";
import { fstatSync, statSync } from "node:fs";
import { isatty } from "node:tty";
import { PserverError } from "../protocol/errors.js";
import { errnoCode } from "../system/file-errors.js";
import { readProcessStat } from "../system/process-identity.js";
import { EXIT } from "./report-error.js";
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
/**
 * Aborts at the first Ctrl-C, SIGTERM or SIGHUP, when the process that started this one with a channel
 * is gone, or when `readerGone` is aborted; ends the process at once at the second. Signals in `ignored`
 * change nothing.
 */
export function watchInterrupts(source, readerGone, ignored = new Set()) {
    const controller = new AbortController();
    // Every call under way listens to the signal, and there may be many.
    setMaxListeners(0, controller.signal);
    const interrupt = (reason) => {
        if (controller.signal.aborted)
            source.exit(EXIT.interrupted);
        controller.abort(new PserverError("ABORTED", `interrupted by ${reason}`));
    };
    for (const signal of SIGNALS) {
        if (!ignored.has(signal))
            source.on(signal, () => interrupt(signal));
    }
    // Without a handler each of these would end the process.
    for (const signal of ignored)
        source.on(signal, () => { });
    readerGone?.addEventListener("abort", () => interrupt("the end of the reader of its output"));
    if (source.connected) {
        source.on("disconnect", () => interrupt("the end of the process that started this one"));
        // Listening must not keep the process alive once its work is done.
        source.channel?.unref();
    }
    return controller.signal;
}
/** Settles when the signal is aborted. */
export async function untilAborted(signal) {
    if (!signal.aborted)
        await once(signal, "abort");
}
/**
 * Waits for `work` and returns its result, unless the signal is aborted first; `work` itself goes on.
 * @throws the signal's reason.
 */
export async function unlessAborted(signal, work) {
    const aborted = untilAborted(signal).then(() => {
        throw signal.reason;
    });
    return await Promise.race([work, aborted]);
}
const VARIABLE = "PSERVER_IGNORED_SIGNALS";
const SHELL = /^(?:ba|da|a|k|mk|z)?sh$|^busybox$/;
/**
 * Returns the signals that this process was started to ignore. Node.js sets all signals to their defaults
 * before it runs a program, so the shell lines at the beginning of `pserver` and `legion` look first and tell
 * by a variable. It is removed here, because it is not for the processes that this one starts. Call it once,
 * before those.
 */
export function takeIgnoredSignals(environment = process.env) {
    const variable = environment[VARIABLE];
    delete environment[VARIABLE];
    return ignoredSignals({
        variable,
        hasTerminal: [0, 1, 2].some((descriptor) => isatty(descriptor)),
        printsToFiles: [1, 2].every(isFileOrDevice),
        isBackgroundJob: isBackgroundJob(),
    });
}
/**
 * Returns the signals that a process was started to ignore. Without the variable, as when somebody has started
 * `node dist/pserver.js`, they follow from what `nohup` and shells do besides: `nohup` leaves no stream at a
 * terminal, and a shell without job control gives its background jobs no input and its own process group.
 */
export function ignoredSignals(start) {
    if (start.variable !== undefined) {
        const names = start.variable.split(" ").filter((name) => name !== "");
        return new Set(names.map((name) => `SIG${name}`));
    }
    const ignored = new Set();
    if (!start.hasTerminal && start.printsToFiles)
        ignored.add("SIGHUP");
    if (start.isBackgroundJob)
        ignored.add("SIGINT").add("SIGQUIT");
    return ignored;
}
function isFileOrDevice(descriptor) {
    const stat = fstatSync(descriptor);
    return stat.isFile() || stat.isCharacterDevice();
}
/**
 * Whether this process is a background job, which only Linux tells. A job in the terminal's foreground is none,
 * so Ctrl-C always ends it.
 */
function isBackgroundJob() {
    const own = readProcessStat(process.pid);
    const parent = readProcessStat(process.ppid);
    if (own === undefined || parent === undefined || !SHELL.test(parent.name))
        return false;
    if (own.group !== parent.group || own.group === own.foregroundGroup)
        return false;
    try {
        return fstatSync(0).rdev === statSync("/dev/null").rdev;
    }
    catch (error) {
        // The standard input may be closed.
        if (errnoCode(error) !== undefined)
            return false;
        throw error;
    }
}
//# sourceMappingURL=signals.js.map