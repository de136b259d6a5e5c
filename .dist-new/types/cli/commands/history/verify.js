import { visible } from "../../../protocol/errors.js";
import { addHelp, openOutput } from "../../context.js";
import { pointEntry, resolvePointText, withHistory, withPool, } from "../../history/with-history.js";
import { addHistoryOptions, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { formatCount, formatRecords } from "../../output/amounts.js";
import { EXIT } from "../../report-error.js";
/** Adds the command `pserver verify`, which checks whether journal, snapshots and hosts agree. */
export function registerVerify(program, context) {
    const command = program
        .command("verify")
        .summary("fold the journal again and compare")
        .description("fold the whole kept journal, and compare it with the snapshots and with the hosts")
        .option("--from <point>", "begin at the snapshot before this point (default: the oldest)");
    addHistoryOptions(command).action((flags) => runVerify(context, flags));
    addHelp(command, {
        "What it does": [
            "  Folds the records after the oldest snapshot of each shard by the code that hosts use, and",
            "  compares the digest of the fold with each later snapshot, state and pieces, and with what the",
            "  host that serves the shard holds now, block by block with the optimizer's state. Trainers may",
            "  train meanwhile. Changes nothing. After a damage it goes on from the next snapshot. A journal",
            "  that was left is folded to its end, and its state at the cut compared with what the next",
            "  generation began with; what was given up of it for a loss may be damaged. Of a recorded file the",
            "  records are read and folded; it has a snapshot to compare with only where a generation begins.",
            "  The tape is read from its beginning: each message must be as it was written, and the lines of all",
            "  records up to the newest snapshot must be there.",
            "  The entries of the job's bucket are compared with what the shards know: pserver recover mends them.",
        ],
        Points: POINT_HELP,
        "Exit code": [
            "  0 if all agree, 1 if something is damaged or differs; others as for every command.",
        ],
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  {"from","sound","shards":[{"shard","records","places":[{"generation","seq","kind","error"}],',
            '  "hosts":{"kind","position","blocks","what","error"},"tape":{"messages","problems":[{"code",',
            '  "message","details"}]}}]}; a place is first (compared with nothing),',
            "  equal, different, damaged (a snapshot), unreadable, given-up or not-kept (the journal after it); hosts are",
            '  equal, different or unknown, or null where none can be asked; "entries":[{"key","problem"}] are',
            "  those that are damaged, lost or older than what the shards know.",
        ],
        Examples: ["  pserver verify", '  pserver verify --job mnist --from "1h ago" --json'],
    });
}
async function runVerify(context, flags) {
    const output = openOutput(context, flags);
    await withHistory(context, flags, async (history) => {
        const { from } = flags;
        const point = from === undefined
            ? undefined
            : await resolvePointText(context, output, history.source, from);
        const found = await withPool(context, history, (pool) => verifyAll(context, output, history, pool, point));
        const known = new Map(found.flatMap(({ known, verification: { shard } }) => known === undefined ? [] : [[shard, known]]));
        const entries = (await history.source.compareEntries?.(known)) ?? [];
        await showResult(context, output, point, { found, entries });
    });
}
async function verifyAll({ signal }, output, { source }, pool, point) {
    const { mapConcurrently } = await import("../../../actors/concurrent.js");
    const { verifyServed } = await import("../../../history/verify.js");
    const { verifyTape } = await import("../../../history/verify-tape.js");
    const { ProgressSum } = await import("../../../history/replay/replayer.js");
    const numbers = Array.from({ length: source.shards }, (_, shard) => shard);
    return await output.progress("verifying", formatRecords).reported((onProgress) => {
        const sum = new ProgressSum(onProgress);
        const verify = async (shard) => {
            const from = point?.cut[shard];
            const { verification, replayed } = await pool.verify(shard, from, sum.note);
            const known = await replayed?.known();
            const canAsk = replayed !== undefined && source.askOwner !== undefined;
            const served = canAsk ? await verifyServed(source, replayed) : undefined;
            const tape = await verifyTape(source.shard(shard), signal);
            return { verification, known, served, tape };
        };
        return mapConcurrently(numbers, verify, pool.threads);
    });
}
async function showResult(context, output, point, { found, entries }) {
    const { describeProblems, describeVerifications, isCompared, isWhole, verificationEntry } = await import("../../history/describe-verifications.js");
    const isSound = found.every(isWhole) && entries.length === 0;
    if (output.json) {
        const from = point === undefined ? null : await pointEntry(point);
        output.value({ from, sound: isSound, shards: found.map(verificationEntry), entries });
    }
    else {
        output.lines(describeVerifications(found, output));
        for (const problem of describeProblems(found))
            output.warning(problem);
        for (const { key, problem } of entries) {
            output.warning(`entry ${visible(key)} of the job's bucket is damaged: ${visible(problem)}`);
        }
        const records = found.reduce((sum, { verification }) => sum + verification.records, 0);
        const what = `${formatCount(found.length, "shard")}, ${formatRecords(records)} folded`;
        const agreed = found.some(isCompared)
            ? "all agree"
            : "no later snapshot, and no host to compare with";
        output.message(`${what}: ${isSound ? agreed : "not all agree"}`);
    }
    if (!isSound)
        context.setExitCode(EXIT.failure);
}
//# sourceMappingURL=verify.js.map