import { ensureError } from "../../protocol/errors.js";
import { claimedEntries } from "../../protocol/messages/batch-records.js";
import { parseClock, parseNote, parseTrainerRecord, } from "../../protocol/messages/records.js";
import { applyChange } from "./apply-update.js";
import { applyBatch } from "./batch/apply-batch.js";
import { BatchFault, checkBatch } from "./batch/check-batch.js";
import { checkRecord, checkReply } from "./check-update.js";
import { noRules, rejection, workOf } from "./trainer-table.js";
const NO_RUNS = [];
const UNCHANGED = { change: undefined, runs: NO_RUNS, isRepeat: false };
/**
 * Applies or rejects a trainer's record, and remembers its outcome. A repeated record, or one of an ended session,
 * changes nothing.
 * @throws INTERNAL, TOO_LARGE if this process cannot go on.
 */
export function foldTrainerRecord(fold, seq, subject, received) {
    const { header } = received;
    const { rules, trainers } = fold.tables;
    if (rules === undefined)
        return { outcome: noRules(header.n, seq), ...UNCHANGED };
    const answer = trainers.answerUnlessAdmitted(subject.trainer, header, seq, rules);
    if (answer !== undefined) {
        const isRepeat = answer.seq !== seq || answer.code === "SETTLED";
        return { outcome: answer, change: undefined, runs: NO_RUNS, isRepeat };
    }
    const applied = applyOnce(contextOf(fold, subject, received, rules), seq, subject, received);
    const entries = subject.by === "batch" ? claimedEntries(received.message) : 0;
    const work = workOf({ ...received, entries });
    trainers.note(subject.trainer, header, applied.outcome, work);
    return applied;
}
function applyOnce(context, seq, subject, received) {
    const { n } = received.header;
    let checked;
    try {
        checked = check(context, subject, received);
    }
    catch (cause) {
        const error = ensureError(cause);
        if (error.code === "INTERNAL")
            throw error;
        const outcome = rejection(n, seq, error.code, error.message);
        const fault = error instanceof BatchFault ? error.entry : undefined;
        return { outcome, ...UNCHANGED, fault };
    }
    const { change, runs } = checked;
    const version = change === undefined ? 0 : applyChange(context, change);
    applyBatch(context, runs);
    return { outcome: { n, seq, version }, change, runs, isRepeat: false };
}
/**
 * Checks a record and returns the changes of blocks that it makes. A clock or a note changes no block; a clock is
 * taken here. All of a batch is checked before any of it is applied, so it is one transaction.
 * @throws the rejection.
 */
function check(context, subject, { header, message }) {
    const { steps, trainer, rules } = context;
    if (subject.by === "trainer") {
        const { parameter, index, verb } = subject;
        const record = parseTrainerRecord(verb, header, message);
        const change = checkRecord(context, { parameter, index }, record, message.data);
        return { change, runs: NO_RUNS };
    }
    if (subject.by === "batch") {
        return { change: undefined, runs: checkBatch(context, header, message) };
    }
    if (subject.by === "clock") {
        const { step } = parseClock(message.fields);
        checkReply(context, header.reply);
        steps.takeClock(trainer, step, rules.clockLeadSteps);
        return UNCHANGED;
    }
    parseNote(message.fields);
    checkReply(context, header.reply);
    return UNCHANGED;
}
function contextOf({ tables, memory, measures }, { trainer }, { isAnswerable }, rules) {
    const { blocks, steps, declarations } = tables;
    // No object spread here: it would take a fifth of the time of a small record.
    return {
        memory,
        blocks,
        rules,
        steps,
        declarations,
        trainer,
        isAnswerable,
        measures,
        added: { bytes: 0, count: 0 },
    };
}
/**
 * Applies a host's record. Before the first `rules` record, other host records have no effect.
 * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
 */
export function foldHostRecord(tables, record) {
    const { rules, blocks, trainers, steps, declarations } = tables;
    if (record.verb === "rules")
        tables.takeRules(record);
    else if (rules === undefined)
        return;
    else if (record.verb === "members")
        steps.takeMembers(record);
    else if (record.verb === "drop") {
        blocks.drop(record.parameter, record.epoch);
        declarations.drop(record.parameter, record.epoch);
    }
    else if (record.verb === "floor")
        trainers.raiseFloor(record.session);
    else if (record.verb === "sessions")
        trainers.endSessions(record);
    else if (record.verb === "forget")
        trainers.forget(record.trainers);
    else if (record.verb === "end")
        trainers.endTrainer(record);
    else if (record.verb === "ready")
        tables.takeReady(record);
    else
        declarations.take(record, rules.declaredMax);
}
//# sourceMappingURL=fold-record.js.map