import { createHash } from "node:crypto";
import { packValue } from "../../protocol/codec.js";
import { toConfig, toSynchronization } from "../../protocol/config/index.js";
import { ensureError, PserverError } from "../../protocol/errors.js";
import { asMap, dtypeField, flagField, integerField, listField, mapField, numberField, textField, } from "../../protocol/fields.js";
import { MEMBERS_MAX, TRAINERS_MAX } from "../../protocol/limits.js";
import { parseGranted } from "../../protocol/messages/host-records.js";
import { outcomeRow, parseOutcomeRow } from "../../protocol/messages/outcomes.js";
import { isWholeRows } from "../../protocol/messages/parts.js";
import { checkShape } from "../../protocol/tensor.js";
import { discardOpenSteps } from "./apply-update.js";
import { blockLabel, heldBytes, isPlaced, slotPlan, } from "./block-actor.js";
import { BlockTable } from "./block-table.js";
import { DeclarationTable } from "./declaration-table.js";
import { StepTable } from "./step-table.js";
import { TrainerTable, UnreadableCounts, } from "./trainer-table.js";
/**
 * Reads a saved step table and checks each field by itself; `StepTable.restore` checks the whole.
 * @throws BAD_MESSAGE if a field is missing or malformed.
 */
function parseSavedSteps(fields) {
    return {
        revision: integerField(fields, "revision"),
        started: flagField(fields, "started"),
        closed: integerField(fields, "closed"),
        members: listField(fields, "members", MEMBERS_MAX).map((value) => {
            const row = { ...listField({ member: value }, "member", 2) };
            return [textField(row, "0"), integerField(row, "1")];
        }),
        participants: listField(fields, "participants", TRAINERS_MAX).map((trainer) => textField({ trainer }, "trainer")),
    };
}
const FORMAT = 1;
/** Returns a state in the present format. The parts must be sorted already. */
function toFoldState(parts, trainers) {
    const { seq, crc, rules, synchronization, steps, floor, unreadable, blocks } = parts;
    const rows = trainers.map(([trainer, entry]) => {
        return [trainer, entry.session, entry.done, [...entry.outcomes.values()].map(outcomeRow)];
    });
    const counts = trainers.map(([trainer, entry]) => [trainer, entry.rejected]);
    const { declared = [], live = [], unreadableOf = [] } = parts;
    const rejected = counts.filter(([, records]) => records > 0);
    return {
        ...{ format: FORMAT, seq, crc, rules, synchronization },
        ...(steps === undefined ? {} : { steps }),
        ...{ floor, unreadable, trainers: rows, blocks },
        ...(declared.length === 0 ? {} : { declared }),
        ...(live.length === 0 ? {} : { live }),
        ...(rejected.length === 0 ? {} : { rejected: rejected }),
        ...(unreadableOf.length === 0 ? {} : { unreadableOf }),
    };
}
/**
 * Reads a saved state and checks each entry by itself; the tables check whether they fit together.
 * @throws SNAPSHOT_DAMAGED with the name of the wrong entry.
 */
export function parseFoldState(state) {
    try {
        const fields = asMap(state, "fold state");
        integerField(fields, "format", FORMAT, FORMAT);
        const { steps } = fields;
        const rejected = new Map(countRows(fields, "rejected"));
        const trainers = listField(fields, "trainers", Number.POSITIVE_INFINITY);
        return {
            seq: integerField(fields, "seq"),
            crc: integerField(fields, "crc", 0, 0xffffffff),
            rules: integerField(fields, "rules"),
            synchronization: toSynchronization(mapField(fields, "synchronization")),
            ...(steps === undefined ? {} : { steps: parseSavedSteps(mapField(fields, "steps")) }),
            floor: integerField(fields, "floor"),
            unreadable: integerField(fields, "unreadable"),
            trainers: trainers.map((row) => parseTrainer(row, rejected)),
            blocks: listField(fields, "blocks", Number.POSITIVE_INFINITY).map(parseBlock),
            declared: listOrNone(fields, "declared").map(parseDeclared),
            live: listOrNone(fields, "live").map((live) => integerField({ live }, "live", 1)),
            unreadableOf: countRows(fields, "unreadableOf"),
        };
    }
    catch (cause) {
        throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
    }
}
/** Returns the error for a snapshot with a bad state. */
function damaged(message, cause) {
    return new PserverError("SNAPSHOT_DAMAGED", message, {}, { cause });
}
/**
 * Reads the rules version of a saved state. It is read before the rest, because states of another version may have
 * other entries.
 * @throws SNAPSHOT_DAMAGED if it names none.
 */
function rulesOfState(state) {
    try {
        return integerField(asMap(state, "fold state"), "rules");
    }
    catch (cause) {
        throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
    }
}
function listOrNone(fields, key) {
    return fields[key] === undefined ? [] : listField(fields, key, Number.POSITIVE_INFINITY);
}
function countRows(fields, key) {
    return listOrNone(fields, key).map((value) => {
        const row = { ...listField({ [key]: value }, key, 2) };
        return [textField(row, "0"), integerField(row, "1", 1)];
    });
}
function parseDeclared(value) {
    const fields = asMap(value, "declared");
    return { ...parseGranted(fields), trainer: textField(fields, "trainer") };
}
function parseTrainer(value, rejected) {
    const row = { ...listField({ trainer: value }, "trainer", 4) };
    const trainer = textField(row, "0");
    const outcomes = listField(row, "3", Number.POSITIVE_INFINITY).map(parseOutcomeRow);
    const entry = {
        session: integerField(row, "1", 1),
        done: integerField(row, "2"),
        outcomes: new Map(outcomes.map((outcome) => [outcome.n, outcome])),
        rejected: rejected.get(trainer) ?? 0,
    };
    if (entry.outcomes.size === outcomes.length)
        return [trainer, entry];
    throw damaged(`trainer ${trainer}: expected one outcome a number`);
}
function parseBlock(value) {
    const fields = asMap(value, "block");
    const header = {
        parameter: textField(fields, "parameter"),
        index: integerField(fields, "index"),
        epoch: integerField(fields, "epoch", 1),
        dtype: dtypeField(fields),
        shape: checkShape(listField(fields, "shape", 64)),
        start: integerField(fields, "start"),
        count: integerField(fields, "count", 1),
        config: toConfig(mapField(fields, "config")),
        version: integerField(fields, "version", 1),
        updates: integerField(fields, "updates"),
        ...(fields["open"] === undefined ? {} : { open: parseOpenStep(mapField(fields, "open")) }),
    };
    const isWhole = !header.config.sparse || isWholeRows(header);
    if (isPlaced(header.index, header) && isWhole && header.updates < header.version)
        return header;
    throw damaged(`${blockLabel(header.parameter, header.index)}: its header contradicts itself`);
}
function parseOpenStep(fields) {
    const trainers = listField(fields, "trainers", MEMBERS_MAX).map((trainer) => textField({ trainer }, "trainer"));
    if (trainers.length === 0 || new Set(trainers).size < trainers.length) {
        throw damaged("open: expected trainers, each once");
    }
    if (fields["learningRate"] === undefined)
        return { trainers };
    return { trainers, learningRate: numberField(fields, "learningRate") };
}
/** Tracks which values and slots of restored blocks have not been loaded yet. */
export class UnloadedSlots {
    #slots = new Map();
    /** Expects all slots of this block. */
    expect(block) {
        this.#slots.set(block, new Set(Array.from({ length: 1 + block.slots }, (_, slot) => slot)));
    }
    /**
     * Copies bytes into a slot of a block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    load(block, slot, bytes) {
        const label = blockLabel(block.parameter, block.index);
        if (slot > block.slots) {
            throw damaged(`${label}: expected slots up to ${block.slots}; received slot ${slot}`);
        }
        const target = block.slotBytes(slot);
        if (bytes.length !== target.length) {
            throw damaged(`${label} slot ${slot}: expected ${target.length} bytes; received ${bytes.length}`);
        }
        target.set(bytes);
        const unloaded = this.#slots.get(block);
        unloaded?.delete(slot);
        if (unloaded?.size === 0)
            this.#slots.delete(block);
    }
    /** @throws SNAPSHOT_DAMAGED if a slot has not been loaded. */
    check() {
        for (const [{ parameter, index }, slots] of this.#slots) {
            const label = blockLabel(parameter, index);
            throw damaged(`${label}: the bytes of slots ${[...slots].join(", ")} are not in the snapshot`);
        }
    }
}
/** Holds the whole state of a fold between two records; saves and restores it. */
export class FoldTables {
    /** Sequence of the last record folded; 0 before the first. */
    seq = 0;
    /** Checksum in the envelope of record {@link seq}; 0 if there is no such record, or it is unreadable. */
    crc = 0;
    /** Whether sequence {@link seq} is known to have a record. */
    endsWithRecord = false;
    /** Checksum of the journal up to {@link seq}. It describes what was folded, so it is no part of the state. */
    sums = new Uint32Array(3);
    /** Rules in force; undefined before the first `rules` record. */
    rules;
    blocks;
    trainers = new TrainerTable();
    steps = new StepTable();
    declarations;
    unreadable = new UnreadableCounts();
    unloaded = new UnloadedSlots();
    #shard;
    #knownRules;
    constructor(options) {
        this.#shard = options.shard;
        this.#knownRules = options.knownRules;
        this.blocks = new BlockTable(options.memory, options.hooks);
        this.declarations = new DeclarationTable(options.shard);
    }
    /**
     * Puts the rules of a `rules` record into force. Only the first such record sets the synchronization, because the
     * slots of blocks depend on it.
     * @throws UNKNOWN_RULES if this program lacks the version.
     */
    takeRules({ rules: version, synchronization = { mode: "async" }, }) {
        const rules = this.#requireRules(version);
        if (this.rules === undefined)
            this.steps.synchronization = synchronization;
        this.rules = rules;
        return rules;
    }
    /** The state without values and slots; equal tables give equal bytes. */
    save() {
        const { synchronization } = this.steps;
        const parts = {
            seq: this.seq,
            crc: this.crc,
            rules: this.rules?.version ?? 0,
            synchronization,
            ...(synchronization.mode === "async" ? {} : { steps: this.steps.save() }),
            floor: this.trainers.floor,
            unreadable: this.unreadable.total,
            blocks: this.blocks.sorted().map((block) => block.header()),
            declared: this.declarations.sorted(),
            live: this.trainers.live,
            unreadableOf: this.unreadable.sorted(),
        };
        return toFoldState(parts, this.trainers.sorted());
    }
    /** Moves before record 1 of a new journal; known outcomes move to record 0. */
    restartJournal() {
        this.trainers.restartJournal();
        this.moveToBeginning();
    }
    /** Moves to a sequence without a record, so that there is no checksum of a last record. */
    moveTo(seq) {
        this.seq = seq;
        this.crc = 0;
        this.endsWithRecord = false;
    }
    /** Moves before record 1 of a new journal. */
    moveToBeginning() {
        this.moveTo(0);
        this.sums.fill(0);
    }
    /**
     * Turns these into the first tables of another job's shard: before record 1, with the same rules, blocks, optimizer
     * slots and declarations, but without trainers, outcomes and steps. Discards the gradients of an open step.
     * @returns the number of blocks whose open step was discarded.
     */
    detach() {
        const { synchronization } = this.steps;
        this.trainers = new TrainerTable();
        this.unreadable = new UnreadableCounts();
        this.steps = new StepTable();
        this.steps.synchronization = synchronization;
        this.moveToBeginning();
        return discardOpenSteps(this.blocks.all());
    }
    /** SHA-256, in hex, of the state, all values and slots: equal exactly if the tables are. */
    digest() {
        const hash = createHash("sha256").update(packValue(this.save()));
        for (const block of this.blocks.sorted()) {
            for (let slot = 0; slot <= block.slots; slot++)
                hash.update(block.slotBytes(slot));
        }
        return hash.digest("hex");
    }
    /**
     * Restores a saved state into empty tables, without the bytes of blocks: {@link loadSlot} brings those.
     * @throws SNAPSHOT_DAMAGED if the state contradicts itself; UNKNOWN_RULES.
     */
    restore(state) {
        const version = rulesOfState(state);
        if (version !== 0)
            this.#requireRules(version);
        const restored = parseFoldState(state);
        this.seq = restored.seq;
        this.crc = restored.crc;
        this.endsWithRecord = restored.crc !== 0;
        this.unreadable.restore(restored.unreadable, restored.unreadableOf);
        if (restored.rules === 0) {
            if (restored.trainers.length + restored.blocks.length + restored.floor === 0)
                return;
            throw damaged("the fold's state: expected nothing before the first rules");
        }
        const rules = this.takeRules(restored);
        this.#restoreSteps(restored.steps);
        this.trainers.restoreSessions(restored.floor, restored.live);
        for (const declared of restored.declared)
            this.declarations.restore(declared);
        for (const [trainer, entry] of restored.trainers)
            this.trainers.restore(trainer, entry, rules);
        for (const header of restored.blocks)
            this.#restoreBlock(header, rules);
    }
    /**
     * Copies bytes into a slot of a restored block.
     * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
     */
    loadSlot(parameter, index, slot, bytes) {
        const block = this.blocks.get(parameter, index);
        if (block === undefined) {
            const label = blockLabel(parameter, index);
            throw damaged(`${label}: received bytes of a block that is not there`);
        }
        this.unloaded.load(block, slot, bytes);
    }
    #restoreSteps(steps) {
        const expected = this.steps.synchronization.mode !== "async";
        if (expected !== (steps !== undefined)) {
            throw damaged(`the fold's state: expected ${expected ? "steps" : "no steps"}`);
        }
        if (steps !== undefined)
            this.steps.restore(steps);
    }
    #restoreBlock(header, rules) {
        const { blocks } = this;
        const label = blockLabel(header.parameter, header.index);
        if (blocks.get(header.parameter, header.index) !== undefined) {
            throw damaged(`${label}: expected once; received twice`);
        }
        const plan = slotPlan(header, this.steps.synchronization);
        if (header.open !== undefined && plan.accumulator === undefined) {
            throw damaged(`${label}: expected no open step in a job without steps`);
        }
        if (blocks.bytes + heldBytes(header, plan) > rules.shardBytesMax ||
            blocks.count >= rules.blocksMax) {
            throw damaged(`${label}: more than a shard may hold`);
        }
        this.unloaded.expect(blocks.put(header, plan, () => undefined));
    }
    #requireRules(version) {
        const rules = this.#knownRules.get(version);
        if (rules !== undefined)
            return rules;
        const known = [...this.#knownRules.keys()];
        throw new PserverError("UNKNOWN_RULES", `journal of shard ${this.#shard}: expected rules ${known.join(", ")}; found ${version}`, { shard: this.#shard, expected: known, found: version });
    }
}
//# sourceMappingURL=fold-state.js.map