import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX, CLOCK_LEAD_STEPS, DECLARED_MAX, REJECTED_WORK_MAX, SHARD_BYTES_MAX, TRAINERS_MAX, WINDOW_RECORDS, } from "../../protocol/limits.js";
import { NOTE_RECORD_BYTES_MAX } from "../../protocol/messages/records.js";
/** Version 1 of the rules. */
export const RULES_1 = {
    version: 1,
    windowRecords: WINDOW_RECORDS,
    trainersMax: TRAINERS_MAX,
    shardBytesMax: SHARD_BYTES_MAX,
    blocksMax: 262_144,
    declaredMax: DECLARED_MAX,
    clockLeadSteps: CLOCK_LEAD_STEPS,
    rejectedMax: REJECTED_WORK_MAX,
    unreadableTrainersMax: 1_024,
    batchEntriesMax: BATCH_ENTRIES_MAX,
    batchHeaderBytesMax: BATCH_HEAD_BYTES_MAX,
    noteBytesMax: NOTE_RECORD_BYTES_MAX,
};
/** All versions this program can fold. */
export const KNOWN_RULES = new Map([[1, RULES_1]]);
/** Version for new jobs; the first record of each of their journals names it. */
export const CURRENT_RULES = RULES_1.version;
//# sourceMappingURL=rules.js.map