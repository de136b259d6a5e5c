import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signalTree } from "../../broker/set-up-broker.js";
import { PserverError } from "../../protocol/errors.js";
import { io } from "../../system/file-errors.js";
/** Exit codes as `git bisect run` reads them. */
const SKIP = 125;
const BAD_MAX = 127;
/**
 * Writes a model into a temporary file and runs a command on it: every `{}` of its words, and the variable
 * PSERVER_MODEL, are the file's path; PSERVER_POINT names the point. What it prints goes to the message stream.
 * @throws BAD_VALUE if it ended as no judge does: by a signal, or with a code above 127; IO if it cannot be
 * run; the reason of the context's signal.
 */
export async function judgeByCommand(context, words, { write, point }) {
    const directory = await io("create", tmpdir(), mkdtemp(join(tmpdir(), "pserver-bisect-")));
    try {
        const model = join(directory, "model.safetensors");
        await write(model);
        const [program = "", ...args] = words.map((word) => word.replaceAll("{}", model));
        const environment = { ...context.environment, PSERVER_MODEL: model, PSERVER_POINT: point };
        return verdictOf(program, await runCommand(context, program, args, environment));
    }
    finally {
        await rm(directory, { recursive: true, force: true });
    }
}
function verdictOf(program, code) {
    if (code === 0)
        return "good";
    if (code === SKIP)
        return "skip";
    if (typeof code === "number" && code <= BAD_MAX)
        return "bad";
    const ended = typeof code === "number" ? `with exit code ${code}` : `by ${code}`;
    throw new PserverError("BAD_VALUE", `${program} ended ${ended}: expected 0 for good, 125 to skip, or another code up to 127 for bad`, { received: code });
}
/** Runs a program; settles with its exit code, or with the signal that ended it. */
async function runCommand({ stderr, signal }, program, args, environment) {
    return await new Promise((resolve, reject) => {
        const child = spawn(program, args, {
            stdio: ["ignore", "pipe", "pipe"],
            // A process group of its own: what a terminal sends to its jobs reaches only this process, which may ignore it.
            detached: true,
            env: { ...environment },
        });
        const abort = () => {
            if (child.pid !== undefined)
                void signalTree(child.pid, "SIGTERM");
        };
        signal.addEventListener("abort", abort, { once: true });
        child.stdout.pipe(stderr, { end: false });
        child.stderr.pipe(stderr, { end: false });
        child.once("error", (cause) => {
            signal.removeEventListener("abort", abort);
            const message = `cannot run ${program}: ${cause.message}`;
            reject(new PserverError("IO", message, { path: program }, { cause }));
        });
        child.once("close", (code, endedBy) => {
            signal.removeEventListener("abort", abort);
            if (signal.aborted)
                reject(signal.reason);
            else
                resolve(code ?? endedBy ?? "SIGKILL");
        });
    });
}
//# sourceMappingURL=judge-by-command.js.map