import { isKnownFinite } from "../../protocol/checksum/checksum.js";
import { DTYPES } from "../../protocol/dtypes.js";
import { PserverError } from "../../protocol/errors.js";
import { ElementRanges, everyEncodedChunk } from "./elements.js";
import { countUpdate, eachColumn, eachListRange, nextCount, RangeWalk, RowRanges, rowCounts, } from "./row-ranges.js";
import { accumulate, gradientScale, isConstantRate, learningRateAt, shapeGradient, UPDATE_CHUNK_BYTES, } from "./update-rule.js";
/**
 * Runs one update of a block by its optimizer's rule. Rows of a sparse parameter have update counts of their own; all
 * elements of any other block share the block's count.
 */
class RuleRun {
    #memory;
    #block;
    #rate;
    #rule;
    #elementBytes;
    /** Address of the rows' update counts; undefined if the rule does the same at every count. */
    #counts;
    /** Addresses of the rule's slots for the elements being updated. */
    #slots = [];
    #updateRate = { count: 0, learningRate: 0 };
    constructor(memory, block, dtype, rate) {
        this.#memory = memory;
        this.#block = block;
        this.#rate = rate;
        this.#rule = block.rule(dtype);
        this.#elementBytes = DTYPES[dtype].bytes;
        const isPlain = !this.#rule.dependsOnCount && this.#isSteady();
        this.#counts = isPlain ? undefined : rowCounts(block);
    }
    /** Returns these elements of the block in the columns that the rule changes: the values and its slots. */
    target(part) {
        const { rows, plan } = this.#block;
        const columns = [];
        for (let slot = 0; slot <= plan.rule; slot++)
            columns.push(this.#block.slotPointer(slot));
        const [elementBytes, counts] = [this.#elementBytes, this.#counts];
        const visitRows = this.#rowVisit(columns, counts);
        return { rows, part, elementBytes, columns, counts, visitRows };
    }
    /**
     * Returns a function that updates rows in one call; undefined if the rule has no kernel for that, or if the
     * learning rate differs from row to row.
     */
    #rowVisit(columns, counts) {
        const rule = this.#rule;
        if (counts === undefined || rule.runRows === undefined || !this.#isSteady())
            return undefined;
        const { rowElements } = this.#block.rows;
        return (gradient, list, n) => {
            this.#begin(1);
            rule.runRows?.(columns, gradient, { list, n, rowElements, counts });
        };
    }
    /** Updates elements of the columns with the gradient at an address; overwrites the gradient. */
    update = (columns, gradient, n, count) => {
        this.#begin(this.#counts === undefined ? this.#block.updates + 1 : nextCount(count));
        for (let slot = 1; slot < columns.length; slot++) {
            this.#slots[slot - 1] = columns[slot];
        }
        this.#rule.run(columns[0], gradient, this.#slots, n);
    };
    /** Whether every update has the same learning rate. */
    #isSteady() {
        const { learningRate } = this.#block.config;
        if (this.#rate.learningRate !== undefined || learningRate === undefined)
            return true;
        return isConstantRate(learningRate);
    }
    #begin(count) {
        if (this.#updateRate.count === count)
            return;
        this.#updateRate.count = count;
        this.#updateRate.learningRate = this.#rateAt(count) / this.#rate.divisor;
        this.#rule.begin(this.#memory.kernels, this.#updateRate);
    }
    #rateAt(count) {
        const { learningRate } = this.#block.config;
        if (this.#rate.learningRate !== undefined)
            return this.#rate.learningRate;
        // Only the optimizer `none` comes here without a learning rate, and it ignores the rate.
        if (learningRate === undefined)
            return 1;
        return learningRateAt(this.#memory.kernels, learningRate, count);
    }
}
const MIX = {
    int32: "mixI32",
    uint32: "mixU32",
    int64: "mixI64",
    uint64: "mixU64",
    float32: "mixF32",
    float64: "mixF64",
};
const FINITE = {
    float32: "finiteF32",
    float64: "finiteF64",
    bfloat16: "finiteBf16",
    float16: "finiteF16",
};
const CANONICAL = { float32: "canonicalF32", float64: "canonicalF64" };
/** Whether elements of this type are floating point numbers. */
export function isFloat(dtype) {
    return DTYPES[dtype].float;
}
/**
 * Whether no element of a payload is a NaN or an infinity; true for integers. The payload must not have changed since
 * the checksum of its record was compared: that pass has already found most answers.
 */
export function allFinite(memory, payload) {
    const { dtype, encoding } = payload;
    if (!isFloat(dtype))
        return true;
    if (isKnownFinite(payload.bytes, encoding ?? dtype))
        return true;
    const finite = memory.kernels[FINITE[encoding ?? dtype]];
    return everyEncodedChunk(memory, payload, (pointer, n) => finite(pointer, n) === 1);
}
/** `values = alpha · values + beta · payload` in the target's one column. */
export function mix(memory, target, payload, alpha, beta) {
    const kernel = memory.kernels[MIX[payload.dtype]];
    eachColumn(memory, target, payload, (columns, incoming, n) => kernel(columns[0], incoming, n, alpha, beta));
}
/** `values = values + payload` in the target's one column; integers wrap around. */
function add(memory, target, payload) {
    const { dtype } = payload;
    eachColumn(memory, target, payload, (columns, incoming, n) => accumulate(memory.kernels, dtype, columns[0], incoming, n));
}
/**
 * `values = data` with canonical NaNs. The data must not have changed since the checksum of its record was compared,
 * as for {@link allFinite}.
 */
function overwrite(memory, dtype, pointer, data) {
    memory.bytes(pointer, data.length).set(data);
    if (isFloat(dtype) && !isKnownFinite(data, dtype)) {
        memory.kernels[CANONICAL[dtype]](pointer, data.length / DTYPES[dtype].bytes);
    }
}
/**
 * Applies one gradient to its block at once: floats are scaled, clipped and given to the optimizer's
 * rule, integers are added with wrap-around. Rows outside the part keep values, slots and counts.
 */
export function applyGradient(memory, change) {
    const { block, payload, part, operation, behind } = change;
    const { dtype, rows, pointer } = block;
    if (isFloat(dtype)) {
        const rate = { learningRate: operation.lr, divisor: behind };
        const run = new RuleRun(memory, block, dtype, rate);
        eachShapedElement(memory, change, dtype, run.target(part), run.update);
    }
    else {
        const elementBytes = DTYPES[dtype].bytes;
        add(memory, { rows, part, elementBytes, columns: [pointer] }, payload);
    }
    countUpdate(memory, block, part?.rows);
    block.updates += 1;
}
/**
 * Scales and clips a gradient in the scratch, and calls `visit` with its elements and the target's, as {@link
 * eachColumn} does.
 */
function eachShapedElement(memory, { block, payload, norm }, dtype, target, visit) {
    const scale = gradientScale(block.config, norm);
    const { clipValue } = block.config;
    eachColumn(memory, target, payload, visit, (n) => shapeGradient(memory.kernels, dtype, memory.scratch, n, scale, clipValue));
}
const SCALE = { float32: "scaleF32", float64: "scaleF64" };
/**
 * Scales and clips a trainer's gradient and adds it to the open step of its block. Values and version stay. The step
 * must have been checked before.
 */
export function accumulateGradient({ memory, blocks }, trainer, change) {
    const { block, part, operation } = change;
    const { dtype, sum } = openSlots(block);
    blocks.beforeChange(block);
    const { rows } = block;
    const target = { rows, part, elementBytes: DTYPES[dtype].bytes, columns: [sum] };
    eachShapedElement(memory, change, dtype, target, (columns, gradient, n) => accumulate(memory.kernels, dtype, columns[0], gradient, n));
    touch(memory, block, part?.rows);
    block.contributors.add(trainer);
    block.openRate = operation.lr;
}
/**
 * Applies the open steps of these blocks: divides the sum of a block's gradients by `divisor` and updates the block
 * once by its optimizer's rule. Of a sparse parameter it updates only the rows that a gradient of the step names.
 */
export function closeStep({ memory, blocks }, closing, divisor) {
    for (const block of closing) {
        if (block.contributors.size === 0)
            continue;
        blocks.beforeChange(block);
        applyOpenStep(memory, block, 1 / divisor);
        block.contributors.clear();
        block.openRate = undefined;
        block.updates += 1;
        block.version += 1;
    }
}
/**
 * Forgets the gradients of open steps; values and versions stay.
 * @returns how many blocks had an open step.
 */
export function discardOpenSteps(blocks) {
    let discarded = 0;
    for (const block of blocks) {
        if (block.contributors.size === 0)
            continue;
        const { accumulator, touched } = block.plan;
        for (const slot of [accumulator, touched]) {
            if (slot !== undefined)
                block.slotBytes(slot).fill(0);
        }
        block.contributors.clear();
        block.openRate = undefined;
        discarded += 1;
    }
    return discarded;
}
function applyOpenStep(memory, block, share) {
    const { dtype, sum } = openSlots(block);
    const run = new RuleRun(memory, block, dtype, { learningRate: block.openRate, divisor: 1 });
    const scale = memory.kernels[SCALE[dtype]];
    const shared = (gradient, n) => {
        if (share !== 1)
            scale(gradient, n, share);
    };
    const { touched } = block.plan;
    if (touched === undefined) {
        applyAll(memory, run, block, { sum, shared });
        return;
    }
    const touchedAt = block.slotPointer(touched);
    if (RowRanges.isShort(block.rows.rowElements * DTYPES[dtype].bytes)) {
        applyShortRows(memory, run, block, { sum, shared, touchedAt });
    }
    else {
        applyLongRows(memory, run, block, { sum, shared, touchedAt });
    }
    block.slotBytes(touched).fill(0);
}
/** Updates all elements of a block, and clears the sum. */
function applyAll(memory, run, block, { sum, shared }) {
    const target = run.target(undefined);
    const walk = new RangeWalk(memory, target);
    const step = UPDATE_CHUNK_BYTES / target.elementBytes;
    for (let start = 0; start < block.count; start += step) {
        const n = Math.min(step, block.count - start);
        const gradient = sum + start * target.elementBytes;
        shared(gradient, n);
        walk.visit(start, n, gradient, run.update);
        memory.bytes(gradient, n * target.elementBytes).fill(0);
    }
}
/** Updates the touched rows of a block with short rows, counts the update, and clears the rows' sums. */
function applyShortRows(memory, run, block, { sum, shared, touchedAt }) {
    const { kernels } = memory;
    const { columns, counts, elementBytes, visitRows } = run.target(undefined);
    const { rows, rowElements } = block.rows;
    const ranges = new RowRanges(memory, rowElements, elementBytes);
    const allCounts = rowCounts(block);
    for (let first = 0; first < rows;) {
        const n = kernels.touchedRows(ranges.list, touchedAt, first, rows, ranges.rowsMax);
        if (n === 0)
            return;
        first = ranges.last(n) + 1;
        const gradient = memory.scratch;
        ranges.gather(gradient, sum, n);
        shared(gradient, n * rowElements);
        ranges.change(columns, counts, n, run.update, visitRows);
        kernels.clearRows(sum, ranges.list, n, rowElements * elementBytes);
        if (allCounts !== undefined)
            kernels.countRows(allCounts, ranges.list, n);
    }
}
/** Does the same as {@link applyShortRows} for a block with long rows, without gathering them. */
function applyLongRows(memory, run, block, { sum, shared, touchedAt }) {
    const rows = touchedRows(memory, touchedAt, block.rows.rows);
    const target = run.target({ rows });
    const walk = new RangeWalk(memory, target);
    const ranges = ElementRanges.of(block.rows, { rows });
    while (ranges.next(UPDATE_CHUNK_BYTES / target.elementBytes)) {
        const gradient = sum + ranges.start * target.elementBytes;
        shared(gradient, ranges.count);
        walk.visit(ranges.start, ranges.count, gradient, run.update);
        memory.bytes(gradient, ranges.count * target.elementBytes).fill(0);
    }
    countUpdate(memory, block, rows);
}
/** Notes that a gradient of the open step names these rows of a sparse parameter; undefined stands for all rows. */
function touch(memory, block, list) {
    if (block.plan.touched === undefined)
        return;
    if (list === undefined) {
        block.slotBytes(block.plan.touched).fill(1);
        return;
    }
    const touchedAt = block.slotPointer(block.plan.touched);
    eachListRange(memory, list, (pointer, n) => memory.kernels.touchRows(touchedAt, pointer, n));
}
/** Returns the numbers of the touched rows, ascending. */
function touchedRows(memory, touchedAt, rows) {
    const bytes = memory.bytes(touchedAt, rows);
    const found = [];
    for (let row = bytes.indexOf(1); row >= 0; row = bytes.indexOf(1, row + 1))
        found.push(row);
    return Uint32Array.from(found);
}
/** Returns type and address of the sum of gradients. @throws INTERNAL if the block has no slot for one. */
function openSlots(block) {
    const { dtype, plan } = block;
    if (isFloat(dtype) && plan.accumulator !== undefined) {
        return { dtype, sum: block.slotPointer(plan.accumulator) };
    }
    throw new PserverError("INTERNAL", `${block.label} has no place to add gradients of a step up`);
}
/**
 * Applies a change that `checkRecord` passed, or adds its gradient to the open step.
 * @returns the version of the block afterwards.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyChange(context, change) {
    if (change.kind === "init")
        return initialize(context, change);
    const { memory, blocks, steps, trainer } = context;
    const { block } = change;
    if (change.kind === "gradient" && waitsForStep(block)) {
        accumulateGradient(context, trainer, change);
        steps.noteGradient(trainer);
        return block.version;
    }
    blocks.beforeChange(block);
    if (change.kind === "set")
        overwrite(memory, block.dtype, block.pointer, change.data);
    else if (change.kind === "gradient")
        applyGradient(memory, change);
    else
        mixIn(memory, change);
    block.version += 1;
    return block.version;
}
function initialize({ memory, blocks }, change) {
    const { record, plan, data } = change;
    const { epoch, dtype, shape, start, count, config } = record;
    const header = { ...change.name, epoch, dtype, shape, start, count, config };
    const block = blocks.put({ ...header, version: 1, updates: 0 }, plan, ({ pointer }) => overwrite(memory, dtype, pointer, data));
    return block.version;
}
/** Whether gradients of a block wait for their step to close: those of floats in a `sync` job do. */
function waitsForStep({ plan }) {
    return plan.accumulator !== undefined;
}
function mixIn(memory, { block, payload, part, operation }) {
    const { rows, pointer, dtype } = block;
    const target = { rows, part, elementBytes: DTYPES[dtype].bytes, columns: [pointer] };
    mix(memory, target, payload, operation.alpha, operation.beta);
}
//# sourceMappingURL=apply-update.js.map