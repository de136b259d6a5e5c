import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ensureError, PserverError } from "../../protocol/errors.js";
import { errnoCode, fileError, io } from "../../system/file-errors.js";
import { runProgram } from "./trainer-command.js";
/** Names of a trainer's files in the log directory. The rank may be a shell expression. */
export const logNames = {
    stdout: (rank) => `rank-${rank}.out`,
    stderr: (rank) => `rank-${rank}.err`,
    /** Exit code and number of restarts; written when the trainer has ended for good. */
    end: (rank) => `rank-${rank}.end`,
    /** Shell lines that set the credentials of the broker; only this user can read it. */
    credentials: "credentials",
    /** The file that says where torch's trainers meet: the address of rank 0's machine, and a port. */
    meeting: "meeting",
};
/**
 * Reads how those trainers ended whose tasks have written it.
 * @throws IO, BAD_FILE for a file that cannot be read, or holds something else.
 */
async function readEnds(files) {
    const ends = await Promise.all(ranksOf(files).map((rank) => readEnd(files, rank)));
    return ends.filter((end) => end !== undefined);
}
/** Counts the other trainers as failed. */
function silentEnds(files, ends) {
    const known = new Set(ends.map(({ rank }) => rank));
    const silent = ranksOf(files).filter((rank) => !known.has(rank));
    return silent.map((rank) => ({
        rank,
        trainer: files.trainerId(rank),
        exitCode: 1,
        restarts: 0,
    }));
}
function ranksOf({ instances }) {
    return Array.from({ length: instances }, (_, rank) => rank);
}
async function readEnd({ logDirectory, trainerId }, rank) {
    const path = join(logDirectory, logNames.end(rank));
    try {
        const match = /^(\d{1,3}) (\d{1,9})$/.exec((await readFile(path, "utf8")).trim());
        if (match === null)
            throw new PserverError("BAD_FILE", `${path}: expected an exit code`);
        const [exitCode = 1, restarts = 0] = match.slice(1).map(Number);
        return { rank, trainer: trainerId(rank), exitCode, restarts };
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return undefined;
        throw fileError("read", path, error);
    }
}
/** Removes the file with the credentials that tasks of a job have read, if it is there. @throws IO. */
export async function removeCredentials(logDirectory) {
    const path = join(logDirectory, logNames.credentials);
    await io("remove", path, rm(path, { force: true }));
}
/** The most that is read at a time. */
const CHUNK_BYTES = 64 * 1024;
/** A file that another process appends to, possibly on another machine. */
export class GrowingFile {
    #path;
    #readBytes = 0;
    constructor(path) {
        this.#path = path;
    }
    /**
     * Passes on the bytes since the last call, up to the present size; none if the file does not exist yet. A
     * file that has become shorter was replaced, and is read from its start.
     * @throws what the file system says.
     */
    async readNew(take) {
        // Opened each time, so that a network file system asks its server for the present size.
        const file = await openIfThere(this.#path);
        if (file === undefined)
            return;
        try {
            const { size } = await file.stat();
            if (size < this.#readBytes)
                this.#readBytes = 0;
            while (this.#readBytes < size) {
                const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - this.#readBytes));
                const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#readBytes);
                if (bytesRead === 0)
                    return;
                this.#readBytes += bytesRead;
                await take(chunk.subarray(0, bytesRead));
            }
        }
        finally {
            await file.close();
        }
    }
}
async function openIfThere(path) {
    try {
        return await open(path);
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return undefined;
        throw error;
    }
}
/** Prints the files of a batch job's tasks while they are written. Memory holds one chunk of one file. */
export class TaskOutput {
    #onMessage;
    #finishing = new AbortController();
    #following = Promise.resolve();
    #streams;
    #turn = Promise.resolve();
    constructor(streams, onMessage) {
        this.#streams = streams;
        this.#onMessage = onMessage;
    }
    /** Prints from now on what the tasks write. */
    static follow({ logDirectory, instances, output, onMessage }) {
        const ranks = Array.from({ length: instances }, (_, rank) => rank);
        const streams = ranks.flatMap((rank) => ["stdout", "stderr"].map((name) => {
            const path = join(logDirectory, logNames[name](rank));
            return { path, file: new GrowingFile(path), lines: output.printer(rank, name) };
        }));
        const task = new TaskOutput(streams, onMessage);
        task.#following = task.#follow();
        return task;
    }
    /** Settles when everything written so far is printed. */
    printWritten() {
        this.#turn = this.#turn.then(() => this.#printNew());
        return this.#turn;
    }
    /** Prints the rest, including last lines without an end, after all tasks have ended. */
    async finish() {
        this.#finishing.abort();
        await this.#following;
        await this.printWritten();
        for (const { lines } of this.#streams)
            await lines.end();
        this.#streams = [];
    }
    async #follow() {
        const { signal } = this.#finishing;
        while (!signal.aborted) {
            await this.printWritten();
            await delay(POLL_MS, undefined, { signal }).catch(() => { });
        }
    }
    async #printNew() {
        for (const stream of this.#streams) {
            try {
                await stream.file.readNew((bytes) => stream.lines.print(bytes));
            }
            catch (error) {
                // Training goes on without this output.
                this.#streams = this.#streams.filter((each) => each !== stream);
                this.#onMessage(`${stream.path} cannot be followed any longer: ${ensureError(error).message}`);
            }
        }
    }
}
const POLL_MS = 1_000;
/** The queue is asked less often than files are looked for: all users share one queue server. */
const POLLS_PER_QUEUE_QUERY = 10;
const QUERY_TIMEOUT_MS = 60_000;
/** How long a file of a task may take to become visible here: NFS may look only once a minute. */
const FILES_TIMEOUT_MS = 70_000;
/** How long the reader may take for the rest of the output, which stays in the files. */
const OUTPUT_TIMEOUT_MS = 10_000;
/** How long the queue may fail to answer, and how long a cancelled job may stay in it. */
const SILENCE_MS_MAX = 3_600_000;
const CANCEL_TIMEOUT_MS = 120_000;
/** The trainers of a batch job, followed through the queue and the files with their output and exit codes. */
export class BatchJob {
    #options;
    #output;
    #stopping = new AbortController();
    #ends = [];
    #ended = Promise.resolve();
    constructor(options, output) {
        this.#options = options;
        this.#output = output;
    }
    /** Follows a job that was submitted. */
    static follow(options) {
        const job = new BatchJob(options, TaskOutput.follow(options));
        job.#ended = job.#untilEnded();
        job.#ended.catch(() => { });
        return job;
    }
    get ended() {
        return this.#ended;
    }
    ends() {
        return this.#ends;
    }
    /**
     * Cancels the job, waits until it has left the queue, removes the credentials, and prints the rest of what
     * its tasks wrote.
     */
    async stop() {
        this.#stopping.abort();
        if (this.#ends.length < this.#options.instances)
            await this.#cancel();
        await removeCredentials(this.#options.logDirectory);
        const isPrinted = this.#output.finish().then(() => true);
        const timer = new AbortController();
        const late = delay(OUTPUT_TIMEOUT_MS, false, { signal: timer.signal }).catch(() => false);
        const { logDirectory, onMessage } = this.#options;
        if (!(await Promise.race([isPrinted, late]).finally(() => timer.abort()))) {
            onMessage(`nobody reads what trainers printed; all of it is in ${logDirectory}`);
        }
    }
    async #cancel() {
        const { system, jobId, onMessage } = this.#options;
        const { code, stderr } = await this.#run(system.cancelCommand(jobId));
        const deadlineMs = performance.now() + CANCEL_TIMEOUT_MS;
        while (performance.now() < deadlineMs) {
            if ((await this.#isQueued()) === false)
                return;
            await delay(POLL_MS);
        }
        const why = code === 0 ? "" : `: ${stderr.trim()}`;
        onMessage(`job ${jobId} was to be cancelled and is still in the queue${why}`);
    }
    async #untilEnded() {
        const ends = await this.#watch();
        if (ends === undefined)
            return;
        this.#ends = ends;
        // The output of trainers is printed before the report of how they ended.
        await this.#output.printWritten();
    }
    /**
     * Waits until all trainers have ended or one has failed, and returns how they ended; undefined if the job is
     * stopped before.
     */
    async #watch() {
        const { signal } = this.#stopping;
        let answeredMs = performance.now();
        for (let polls = 1; !signal.aborted; polls++) {
            const ends = await readEnds(this.#options);
            const failed = ends.some(({ exitCode }) => exitCode !== 0);
            if (failed || ends.length === this.#options.instances)
                return ends;
            if (polls % POLLS_PER_QUEUE_QUERY === 0) {
                const isQueued = await this.#isQueued();
                if (isQueued === false)
                    return await this.#lastEnds();
                if (isQueued === true)
                    answeredMs = performance.now();
                else if (performance.now() - answeredMs > SILENCE_MS_MAX)
                    throw this.#silent();
            }
            await delay(POLL_MS, undefined, { signal }).catch(() => { });
        }
        return undefined;
    }
    /** Returns how all trainers ended; one without a file of its end counts as failed. */
    async #lastEnds() {
        const { instances, jobId, onMessage, logDirectory } = this.#options;
        const deadlineMs = performance.now() + FILES_TIMEOUT_MS;
        let ends = await readEnds(this.#options);
        while (ends.length < instances && performance.now() < deadlineMs) {
            await delay(POLL_MS);
            ends = await readEnds(this.#options);
        }
        const silent = silentEnds(this.#options, ends);
        if (silent.length === 0)
            return ends;
        const names = silent.map(({ trainer }) => trainer).join(", ");
        onMessage(`job ${jobId} has ended, and ${names} did not tell how: see ${logDirectory}, a directory that all machines must share`);
        return [...ends, ...silent];
    }
    async #isQueued() {
        const { system, jobId } = this.#options;
        return system.isQueued(await this.#run(system.queueCommand(jobId)));
    }
    #run(command) {
        const { environment } = this.#options;
        return runProgram(command, { environment, timeoutMs: QUERY_TIMEOUT_MS });
    }
    #silent() {
        const { system, jobId } = this.#options;
        const [program] = system.queueCommand(jobId);
        const message = `${program} has not said for ${SILENCE_MS_MAX / 60_000} minutes whether job ${jobId} runs`;
        return new PserverError("TIMEOUT", message, { jobId });
    }
}
//# sourceMappingURL=batch-job.js.map