import { createHash } from "node:crypto";
import { lstat, readdir, readFile, realpath, rm, stat, statfs } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { FILE_MODES, makeDirectory, writeFileAtomically } from "../../model-files/atomic-write.js";
import { badPath, resolveModelPath } from "../../model-files/model-path.js";
import { asMap, integerField, PserverError, quoteName, textField } from "../../protocol/index.js";
import { errnoCode, fileError, io } from "../../system/file-errors.js";
import { parseJson } from "../../transport/broker-error.js";
import { readable } from "../fold/journal-record.js";
import { SAVES_MAX, TRAINER_SAVES_MAX } from "./save-quotas.js";
/** The part of the disk, of what is free and what the job's models take, that these may take by default. */
const SAVE_SHARE = 3 / 4;
const TRAINER_SAVE_SHARE = 1 / 2;
/** What a file takes at least: many small ones fill a disk, too. */
const FILE_BYTES_MIN = 4096;
/** Where the records are, in the model directory. No model can be saved below it. */
const RECORDS = ".pserver-saves";
/** Version of the records. */
const FORMAT = 1;
/** How long a record counts whose model is not there yet: it may be written by another host. */
const WRITING_MS_MAX = 86_400_000;
/**
 * Counts the models that trainers of a job have saved below a model directory, and bounds them. Each has a record in
 * the directory, a file of its own that says who saved it, so that hosts that share the directory, and later hosts,
 * know of it. A model counts as long as it is there: whoever removes it makes room.
 */
export class SavedModels {
    #deps;
    #records;
    constructor(deps) {
        this.#deps = deps;
        this.#records = join(deps.directory, RECORDS, deps.job);
    }
    /**
     * Makes room for a model of so many bytes and files. One that replaces another takes its place, whoever saved that.
     * @throws QUOTA naming the limit, what is used, and the flag; BAD_PATH; DISK_FULL, IO.
     */
    async reserve(trainer, { path, bytes: dataBytes, files }) {
        const { directory } = this.#deps;
        const root = await io("resolve the model directory", directory, realpath(directory));
        const inside = relative(root, await resolveModelPath(directory, path));
        if (inside.split(sep)[0] === RECORDS) {
            throw badPath(`a path outside ${RECORDS}`, quoteName(path), path);
        }
        const record = join(this.#records, `${createHash("sha256").update(inside).digest("hex")}.json`);
        const former = await this.#read(record);
        const bytes = dataBytes + files * FILE_BYTES_MIN;
        await this.#require(trainer, { path: inside, trainer, bytes });
        await io("create", this.#records, makeDirectory(this.#records));
        await this.#write(record, { path: inside, trainer, bytes });
        return {
            saved: (written) => this.#write(record, { path: inside, trainer, bytes: written + files * FILE_BYTES_MIN }),
            failed: async () => {
                if (former !== undefined)
                    await this.#write(record, former);
                else if (!(await exists(join(directory, inside))))
                    await rm(record, { force: true });
            },
        };
    }
    /** Checks that a model may be saved in addition to those that are there. @throws QUOTA */
    async #require(trainer, added) {
        const { directory, job, quotas } = this.#deps;
        const others = (await this.#list()).filter(({ path }) => path !== added.path);
        const own = others.filter((model) => model.trainer === trainer);
        const [all, mine] = [usageOf([...others, added]), usageOf([...own, added])];
        const disk = await io("look at the disk of", directory, statfs(directory));
        const shared = disk.bavail * disk.bsize + usageOf(others).bytes;
        const { savesMax = SAVES_MAX, trainerSavesMax = Math.min(TRAINER_SAVES_MAX, savesMax) } = quotas;
        const { saveBytesMax = Math.floor(shared * SAVE_SHARE) } = quotas;
        const { trainerSaveBytesMax = Math.min(shared * TRAINER_SAVE_SHARE, saveBytesMax) } = quotas;
        const [everybody, who] = [`job ${job}`, `trainer ${quoteName(trainer)}`];
        check(everybody, "saved models", savesMax, all.saves, "--quota-saves");
        check(everybody, "bytes of saved models", saveBytesMax, all.bytes, "--quota-save-bytes");
        check(who, "saved models", trainerSavesMax, mine.saves, "--trainer-quota-saves");
        const ownBytes = Math.floor(trainerSaveBytesMax);
        check(who, "bytes of saved models", ownBytes, mine.bytes, "--trainer-quota-save-bytes");
    }
    /** Lists the models that are there or are being saved. */
    async #list() {
        const models = [];
        for (const name of await namesIn(this.#records)) {
            const record = join(this.#records, name);
            const model = await this.#read(record);
            if (model === undefined)
                continue;
            if (await exists(join(this.#deps.directory, model.path)))
                models.push(model);
            else if (await isRecent(record))
                models.push(model);
            else
                await rm(record, { force: true });
        }
        return models;
    }
    /** Reads a record; undefined if there is none that can be read. */
    async #read(record) {
        const text = await readFile(record, "utf8").catch(() => undefined);
        return text === undefined ? undefined : readable(() => parseRecord(text));
    }
    async #write(record, model) {
        const text = Buffer.from(JSON.stringify({ format: FORMAT, ...model }));
        await writeFileAtomically(record, once(text), FILE_MODES.model);
    }
}
async function* once(bytes) {
    yield bytes;
}
/** @throws BAD_MESSAGE if it is no record. */
function parseRecord(text) {
    const fields = asMap(parseJson(text, "record of a saved model"), "record of a saved model");
    integerField(fields, "format", FORMAT, FORMAT);
    return {
        path: textField(fields, "path", 4_096),
        trainer: textField(fields, "trainer"),
        bytes: integerField(fields, "bytes"),
    };
}
function usageOf(models) {
    return { saves: models.length, bytes: models.reduce((sum, { bytes }) => sum + bytes, 0) };
}
function check(who, what, expected, received, flag) {
    if (received <= expected)
        return;
    throw new PserverError("QUOTA", `${who}: expected at most ${expected} ${what}; with this one there are ${received}. ` +
        `Remove some from the model directory, or start its hosts with a higher ${flag}`, { expected, received, flag });
}
async function namesIn(directory) {
    try {
        return await readdir(directory);
    }
    catch (error) {
        if (errnoCode(error) === "ENOENT")
            return [];
        throw fileError("list", directory, error);
    }
}
async function exists(file) {
    try {
        await lstat(file);
        return true;
    }
    catch (error) {
        const errno = errnoCode(error);
        if (errno === "ENOENT" || errno === "ENOTDIR")
            return false;
        throw fileError("examine", file, error);
    }
}
/** Whether a record was written so lately that its model may still be written. */
async function isRecent(record) {
    try {
        return Date.now() - (await stat(record)).mtimeMs < WRITING_MS_MAX;
    }
    catch (error) {
        // Another host has removed it.
        if (errnoCode(error) === "ENOENT")
            return false;
        throw fileError("examine", record, error);
    }
}
//# sourceMappingURL=saved-models.js.map