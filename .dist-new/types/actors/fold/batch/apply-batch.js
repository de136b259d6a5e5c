import { isKnownFinite } from "../../../protocol/checksum/checksum.js";
import { DTYPES } from "../../../protocol/dtypes.js";
import { PserverError } from "../../../protocol/errors.js";
import { applyChange, canonical, isFloat, MIX, RuleRun, waitsForStep, } from "../apply-update.js";
import { countUpdate, nextCount, rowCounts } from "../row-ranges.js";
import { accumulate, gradientScale, shapeGradient } from "../update-rule.js";
import { fitsPiece, PIECES_BYTES_MAX, PIECES_MAX, PieceTable, stagePieces } from "./pieces.js";
import { entryChange, firstOffsets, passEntry, } from "./run-change.js";
/**
 * Applies what the runs of a batch change, in their order. Neighbouring entries of small blocks, or of short rows, that
 * are changed by the same arithmetic are changed together.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyBatch(context, changes) {
    for (const change of changes) {
        if (change.run.verb === "init")
            applyInits(context, change);
        else
            new RunApplication(context, change).apply();
    }
}
function applyInits(context, change) {
    const offsets = firstOffsets();
    change.created.forEach(({ declared, index }, place) => {
        applyChange(context, entryChange(change, place, offsets));
        const block = context.blocks.get(declared.name, index);
        if (block === undefined)
            throw new PserverError("INTERNAL", "an init has made no block");
        change.blocks.push(block);
        passEntry(change.run, place, offsets);
    });
}
/** Applies one push or set to its blocks. */
class RunApplication {
    #context;
    #change;
    #run;
    #table;
    #offsets = firstOffsets();
    constructor(context, change) {
        this.#context = context;
        this.#change = change;
        this.#run = change.run;
        this.#table = new PieceTable(context.memory);
    }
    apply() {
        const { numbers } = this.#run;
        for (let place = 0; place < numbers.length;) {
            const end = this.#groupEnd(place);
            if (end > place) {
                this.#applyGroup(place, end);
            }
            else {
                applyChange(this.#context, entryChange(this.#change, place, this.#offsets));
                passEntry(this.#run, place, this.#offsets);
            }
            place = Math.max(end, place + 1);
        }
    }
    /** Returns the entry behind the last one that can be changed together with this one; the entry itself if none can. */
    #groupEnd(first) {
        const { counts, dtype } = this.#run;
        const lead = this.#change.blocks[first];
        const rule = this.#ruleOf(lead, first);
        if (rule?.isByRow)
            return first;
        const isAlike = rule?.isAlike ?? true;
        const elementsMax = PIECES_BYTES_MAX / DTYPES[dtype].bytes;
        let [elements, pieces, end] = [0, 0, first];
        for (; end < counts.length; end++) {
            elements += counts[end];
            pieces += this.#piecesOf(end);
            if (elements > elementsMax || pieces > PIECES_MAX || !this.#isSmall(end))
                break;
            if (end > first && !this.#isLike(first, end, isAlike))
                break;
        }
        return end;
    }
    #piecesOf(place) {
        return this.#run.parts === undefined ? 1 : this.#run.parts.rows[place];
    }
    /** Whether an entry is a small block, or whole rows that are short. */
    #isSmall(place) {
        const { parts, dtype } = this.#run;
        if (parts === undefined)
            return fitsPiece(dtype, this.#run.counts[place]);
        const { rowElements } = this.#change.blocks[place].rows;
        return parts.innerList === undefined && fitsPiece(dtype, rowElements);
    }
    /** The rule of a gradient that is applied at once, made for the block of an entry. */
    #ruleOf(block, place) {
        const { operation, dtype } = this.#run;
        if (operation?.op !== "grad" || !isFloat(dtype) || waitsForStep(block))
            return undefined;
        const rate = { learningRate: operation.lr, divisor: this.#change.behind?.[place] ?? 1 };
        return new RuleRun(this.#context.memory, block, dtype, rate);
    }
    /** Whether the arithmetic of an entry is that of another one. `isAlike`: however many updates the blocks have had. */
    #isLike(first, place, isAlike) {
        const { norms } = this.#run;
        const { blocks, behind } = this.#change;
        const lead = blocks[first];
        const block = blocks[place];
        if (block.kind !== lead.kind || (!isAlike && block.updates !== lead.updates))
            return false;
        if (behind !== undefined && behind[place] !== behind[first])
            return false;
        if (norms === undefined)
            return true;
        return gradientScale(block.config, norms[place]) === gradientScale(lead.config, norms[first]);
    }
    /** Changes the entries from `first` to `end`, whose arithmetic is the same. */
    #applyGroup(first, end) {
        const { memory, blocks: table } = this.#context;
        const { operation, counts } = this.#run;
        const { blocks } = this.#change;
        let elements = 0;
        for (let place = first; place < end; place++) {
            table.beforeChange(blocks[place]);
            elements += counts[place];
        }
        const lead = blocks[first];
        const waits = operation?.op === "grad" && waitsForStep(lead);
        stagePieces(memory, this.#run, this.#offsets.element, elements);
        if (operation === undefined) {
            this.#fillTable(first, end, VALUES);
            this.#overwrite(elements);
        }
        else if (operation.op === "mix") {
            this.#fillTable(first, end, VALUES);
            this.#mix(operation, elements);
        }
        else if (waits) {
            this.#fillTable(first, end, [lead.plan.accumulator]);
            this.#shape(lead, first, elements);
            this.#add(elements);
        }
        else {
            const rule = this.#ruleOf(lead, first);
            this.#fillTable(first, end, rule === undefined ? VALUES : rule.slots);
            if (rule === undefined)
                this.#add(elements);
            else {
                this.#shape(lead, first, elements);
                this.#update(rule, elements);
            }
        }
        for (let place = first; place < end; place++) {
            const block = blocks[place];
            if (operation?.op === "grad")
                this.#countGradient(block, place, operation, waits);
            if (!waits)
                block.version += 1;
            passEntry(this.#run, place, this.#offsets);
        }
    }
    /** Fills the table with the pieces of entries, and their addresses in these slots. */
    #fillTable(first, end, slots) {
        const { parts, dtype } = this.#run;
        const elementBytes = DTYPES[dtype].bytes;
        const table = this.#table;
        table.clear();
        let { row } = this.#offsets;
        for (let place = first; place < end; place++) {
            const block = this.#change.blocks[place];
            if (parts === undefined) {
                table.add(block.bytes);
                for (let i = 0; i < slots.length; i++)
                    table.at(i, block.slotPointer(slots[i]));
                continue;
            }
            const rowBytes = block.rows.rowElements * elementBytes;
            for (const rowEnd = row + parts.rows[place]; row < rowEnd; row++) {
                const offset = parts.rowList[row] * rowBytes;
                table.add(rowBytes);
                for (let i = 0; i < slots.length; i++) {
                    table.at(i, block.slotPointer(slots[i]) + offset);
                }
            }
        }
    }
    #overwrite(elements) {
        const { memory } = this.#context;
        const { dtype, values } = this.#run;
        if (isFloat(dtype) && !isKnownFinite(values, dtype)) {
            canonical(memory, dtype, memory.scratch, elements);
        }
        this.#table.scatterFrom(memory.scratch, 0);
    }
    #mix({ alpha, beta }, elements) {
        const { memory } = this.#context;
        const values = this.#table.gather(0);
        memory.kernels[MIX[this.#run.dtype]](values, memory.scratch, elements, alpha, beta);
        this.#table.scatter(0);
    }
    #add(elements) {
        const { memory } = this.#context;
        const sums = this.#table.gather(0);
        accumulate(memory.kernels, this.#run.dtype, sums, memory.scratch, elements);
        this.#table.scatter(0);
    }
    /** Scales and clips the gradients in the scratch. */
    #shape({ config }, first, elements) {
        const { memory } = this.#context;
        const scale = gradientScale(config, this.#run.norms?.[first]);
        const dtype = floatOf(this.#run.dtype);
        shapeGradient(memory.kernels, dtype, memory.scratch, elements, scale, config.clipValue);
    }
    #update(rule, elements) {
        const columns = rule.slots.map((_slot, i) => this.#table.gather(i));
        rule.update(columns, this.#context.memory.scratch, elements, 0);
        for (let i = 0; i < columns.length; i++)
            this.#table.scatter(i);
    }
    /** Notes a gradient in its block: as one of the open step, or as an update of the block or of some rows. */
    #countGradient(block, place, operation, waits) {
        const { memory, trainer, steps } = this.#context;
        if (waits) {
            this.#eachRow(block, place, block.plan.touched, 1, () => 1);
            block.contributors.add(trainer);
            block.openRate = operation.lr;
            steps.noteGradient(trainer);
            return;
        }
        block.updates += 1;
        if (this.#run.parts === undefined)
            countUpdate(memory, block, undefined);
        else if (rowCounts(block) !== undefined) {
            this.#eachRow(block, place, block.plan.counts, 4, nextCount);
        }
    }
    /** Changes the number that a slot has for each row of an entry; of `bytes` bytes each. */
    #eachRow(block, place, slot, bytes, change) {
        if (slot === undefined)
            return;
        const { parts } = this.#run;
        const all = block.slotBytes(slot);
        if (parts === undefined) {
            all.fill(1);
            return;
        }
        const { row } = this.#offsets;
        const numbers = bytes === 1 ? all : new Uint32Array(all.buffer, all.byteOffset, all.length / 4);
        const end = row + parts.rows[place];
        for (let i = row; i < end; i++) {
            const at = parts.rowList[i];
            numbers[at] = change(numbers[at]);
        }
    }
}
/** The slot of the values. */
const VALUES = [0];
function floatOf(dtype) {
    if (isFloat(dtype))
        return dtype;
    throw new PserverError("INTERNAL", `expected floats to be scaled; received ${dtype}`);
}
//# sourceMappingURL=apply-batch.js.map