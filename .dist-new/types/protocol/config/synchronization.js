import { MEMBERS_MAX } from "../limits.js";
import { badConfig, Settings, wholeRange } from "./read-settings.js";
const WHAT = "synchronization";
const ENTRIES = {
    async: [],
    sync: ["trainers", "backups", "reduce"],
    ssp: ["trainers", "staleness"],
};
/**
 * Completes and checks a synchronization from a caller or a message.
 * @throws BAD_CONFIG for an unknown mode, an entry the mode does not have, or a number out of range:
 * trainers and backups together are 1 to `MEMBERS_MAX`.
 */
export function toSynchronization(input = {}) {
    const entries = typeof input === "string" ? { mode: input } : input;
    const every = ["mode", ...Object.values(ENTRIES).flat()];
    const modes = Object.keys(ENTRIES);
    const mode = new Settings(entries, WHAT, every).word("mode", modes, "async");
    const settings = new Settings(entries, `${WHAT} ${mode}`, ["mode", ...ENTRIES[mode]]);
    if (mode === "async")
        return { mode };
    const trainers = settings.number("trainers", wholeRange(1, MEMBERS_MAX));
    if (mode === "ssp") {
        return { mode, trainers, staleness: settings.number("staleness", wholeRange(0)) };
    }
    const backups = settings.number("backups", wholeRange(0, MEMBERS_MAX), 0);
    if (trainers + backups > MEMBERS_MAX) {
        const expected = `at most ${MEMBERS_MAX} trainers and backups together`;
        throw badConfig(WHAT, expected, trainers + backups);
    }
    return { mode, trainers, backups, reduce: settings.word("reduce", ["mean", "sum"], "mean") };
}
/** Describes a synchronization: `sync of 4 trainers and 1 backup, mean`. */
export function synchronizationText(synchronization) {
    const { mode } = synchronization;
    if (mode === "async")
        return mode;
    const trainers = counted(synchronization.trainers, "trainer");
    if (mode === "ssp")
        return `ssp of ${trainers}, staleness ${synchronization.staleness}`;
    const { backups, reduce } = synchronization;
    const backupsText = backups === 0 ? "" : ` and ${counted(backups, "backup")}`;
    return `sync of ${trainers}${backupsText}, ${reduce}`;
}
function counted(count, what) {
    return `${count} ${what}${count === 1 ? "" : "s"}`;
}
//# sourceMappingURL=synchronization.js.map