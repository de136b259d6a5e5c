import { ensureError } from "../../protocol/errors.js";
import { readPackedIndex, readPartIndex } from "../../protocol/messages/parts.js";
import { parseClock, parseNote } from "../../protocol/messages/records.js";
import { applyChange } from "./apply-update.js";
import { checkReply, checkUpdate } from "./check-update.js";
import { noRules, rejection } from "./trainer-table.js";
const NO_CHANGES = [];
const UNCHANGED = { changes: NO_CHANGES, isRepeat: false };
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
        return { outcome: answer, changes: NO_CHANGES, isRepeat };
    }
    const applied = applyOnce(contextOf(fold, subject, received, rules), seq, subject, received);
    trainers.note(subject.trainer, header, applied.outcome);
    return applied;
}
function applyOnce(context, seq, subject, received) {
    const { n } = received.header;
    let changes;
    try {
        changes = check(context, subject, received);
    }
    catch (cause) {
        const error = ensureError(cause);
        if (error.code === "INTERNAL")
            throw error;
        return { outcome: rejection(n, seq, error.code, error.message), ...UNCHANGED };
    }
    let last = 0;
    for (const change of changes)
        last = applyChange(context, change);
    const version = subject.by === "batch" ? 0 : last;
    return { outcome: { n, seq, version }, changes, isRepeat: false };
}
/**
 * Checks a record and returns the changes of blocks that it makes. A clock or a note changes no block; a clock is
 * taken here.
 * @throws the rejection.
 */
function check(context, subject, { header, message }) {
    const { steps, trainer, rules } = context;
    if (subject.by === "clock") {
        const { step } = parseClock(message.fields);
        checkReply(context, header.reply);
        steps.takeClock(trainer, step, rules.clockLeadSteps);
        return NO_CHANGES;
    }
    if (subject.by !== "note")
        return checkUpdate(context, subject, header, message);
    parseNote(message.fields);
    checkReply(context, header.reply);
    return NO_CHANGES;
}
function contextOf({ tables, memory, measures }, { trainer, by }, { isAnswerable }, rules) {
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
        readIndex: by === "batch" ? readPackedIndex : readPartIndex,
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
    else
        declarations.take(record, rules.declaredMax);
}
//# sourceMappingURL=fold-record.js.map