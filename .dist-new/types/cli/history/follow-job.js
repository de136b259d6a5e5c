import { constants, setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { lockStore } from "../../broker/store-lock.js";
import { resolveSettings } from "../../client/wire/broker-settings.js";
import { JobArchiver } from "../../history/archive/job-archiver.js";
import { BrokerHistory } from "../../history/broker-history.js";
import { ensureError, healsWithTime } from "../../protocol/errors.js";
import { showPosition } from "../../protocol/messages/position.js";
import { toOverrides } from "../options/connection-options.js";
import { formatBytes, formatCount, formatNumber } from "../output/amounts.js";
/** Pause between two searches for new records. */
const PAUSE_MS = 1_000;
/** Time between two messages about the progress. */
const REPORT_MS = 10_000;
/** Number of journal ends that a message names; a job can have many shards. */
const ENDS_SHOWN = 16;
/**
 * Archives a job into a directory until it is interrupted, or with `--once` only what the job has now.
 * @throws STORE_IN_USE if another process archives into the directory; as {@link BrokerHistory.open},
 * {@link JobArchiver.open} and `copy` do. What was copied stays.
 */
export async function followJob(context, output, directory, flags) {
    // On a machine that has more work than processors, trainers and hosts come first.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    const reach = resolveSettings(toOverrides(flags), context.environment);
    const source = await BrokerHistory.open(reach, flags.job, "archive");
    let lock;
    const takeLock = async () => {
        lock = await lockStore(directory);
    };
    try {
        await archiveJob(context, output, flags, { source, directory, lock: takeLock });
    }
    finally {
        await lock?.release();
    }
}
/** Archives a job as {@link followJob} does, from an open history, which it closes. @throws as that does. */
export async function archiveJob({ signal }, output, { job, once, grace }, place) {
    const report = new ArchiveReport(output, job, place.directory);
    const archiver = await JobArchiver.open({
        ...{ ...place, graceMs: grace },
        onDamaged: (error) => report.warnOnce(error.message),
        onUnregistered: (error) => output.warning(`hosts may trim what is not copied: ${error.code}: ${error.message}`),
    });
    if (once !== true)
        output.message("archiving; Ctrl-C ends it");
    try {
        do {
            await copyUnlessAborted(archiver, signal, once === true ? undefined : report);
            report.tell(archiver.progress, once === true || signal.aborted);
            if (once !== true)
                await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
        } while (once !== true && !signal.aborted);
    }
    catch (error) {
        await archiver.abandon(ensureError(error));
        throw error;
    }
    await archiver.end();
    report.tell(archiver.progress, true);
}
/** Copies what the job has now. With `report`, an error that can pass is reported there instead of thrown. */
async function copyUnlessAborted(archiver, signal, report) {
    try {
        await archiver.copy(signal);
    }
    catch (error) {
        if (signal.aborted)
            return;
        const failure = ensureError(error);
        if (report === undefined || !healsWithTime(failure.code))
            throw failure;
        report.interrupted(failure);
    }
}
/** Reports how far an archive is: when something has changed, and not too often. */
class ArchiveReport {
    #output;
    #job;
    #directory;
    #toldMs = Number.NEGATIVE_INFINITY;
    #told = "";
    #warnings = new Set();
    constructor(output, job, directory) {
        this.#output = output;
        this.#job = job;
        this.#directory = directory;
    }
    /** Warns of something, unless it has given that warning before. */
    warnOnce(text) {
        if (this.#warnings.has(text))
            return;
        this.#warnings.add(text);
        this.#output.warning(text);
    }
    /** Reports that copying was interrupted, and goes on. */
    interrupted({ code, message }) {
        this.#output.warning(`${code}: ${message}; trying again`);
    }
    /** Reports how far the archive is; if `isLast`, even if it did so recently. */
    tell(shards, isLast) {
        this.#tellMissing(shards);
        const behindRecords = shards.reduce((sum, shard) => sum + shard.behindRecords, 0);
        const copiedBytes = shards.reduce((sum, shard) => sum + shard.copiedBytes, 0);
        const text = `copied ${formatBytes(copiedBytes)}, ${formatNumber(behindRecords)} records behind; ${this.#ends(shards)}`;
        const isDue = isLast || performance.now() - this.#toldMs >= REPORT_MS;
        if (!isDue || text === this.#told)
            return;
        this.#toldMs = performance.now();
        this.#told = text;
        if (!this.#output.json)
            this.#output.message(text);
        else {
            const [job, directory] = [this.#job, this.#directory];
            this.#output.value({ job, directory, behindRecords, copiedBytes, shards });
        }
    }
    #ends(shards) {
        const ends = shards.flatMap(({ shard, record }) => record === undefined ? [] : [showPosition(shard, record)]);
        if (ends.length === 0)
            return "no records yet";
        const more = ends.length > ENDS_SHOWN ? ` and ${ends.length - ENDS_SHOWN} more` : "";
        return `up to ${ends.slice(0, ENDS_SHOWN).join(" ")}${more}`;
    }
    #tellMissing(shards) {
        for (const { shard, missing } of shards) {
            for (const { generation, firstSeq, lastSeq } of missing) {
                const from = showPosition(shard, { generation, seq: firstSeq });
                const count = formatCount(lastSeq - firstSeq + 1, "record");
                this.warnOnce(`${count} from ${from} on are not in the archive and were trimmed`);
            }
        }
    }
}
//# sourceMappingURL=follow-job.js.map