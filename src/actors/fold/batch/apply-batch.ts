import { isKnownFinite } from "../../../protocol/checksum/checksum.ts";
import { DTYPES, isHalf } from "../../../protocol/dtypes.ts";
import { PserverError } from "../../../protocol/errors.ts";
import type { PushOperation } from "../../../protocol/messages/records.ts";
import {
  applyChange,
  type ChangeContext,
  canonical,
  floatOf,
  isFullFloat,
  MIX,
  numberOf,
  RuleRun,
  waitsForStep,
} from "../apply-update.ts";
import type { BlockActor } from "../block-actor.ts";
import { type ComputedDtype, computedAs } from "../elements.ts";
import { countUpdate, nextCount, rowCounts } from "../row-ranges.ts";
import { accumulate, gradientScale, shapeGradient } from "../update-rule.ts";
import {
  fitsPiece,
  PIECES_BYTES_MAX,
  PIECES_MAX,
  PieceTable,
  stagePieces,
  stageValues,
} from "./pieces.ts";
import {
  type EntryOffsets,
  entryChange,
  type FoldedRun,
  firstOffsets,
  type NewBlock,
  passEntry,
  type RunChange,
} from "./run-change.ts";

/**
 * Applies what the runs of a batch change, in their order. Neighbouring entries of small blocks, or of short rows, that
 * are changed by the same arithmetic are changed together.
 * @throws TOO_LARGE if this process lacks the memory for a new block.
 */
export function applyBatch(context: ChangeContext, changes: readonly RunChange[]): void {
  for (const change of changes) {
    if (change.run.verb === "init") applyInits(context, change);
    else new RunApplication(context, change).apply();
  }
}

function applyInits(context: ChangeContext, change: RunChange): void {
  const offsets = firstOffsets();
  change.created.forEach(({ declared, index }: NewBlock, place) => {
    applyChange(context, entryChange(change, place, offsets));
    const block = context.blocks.get(declared.name, index);
    if (block === undefined) throw new PserverError("INTERNAL", "an init has made no block");
    change.blocks.push(block);
    passEntry(change.run, place, offsets);
  });
}

/** Entries of a run that are changed together, and the number of their elements. */
interface Group {
  readonly first: number;
  /** The entry behind the last one. */
  readonly end: number;
  readonly elements: number;
}

/** Applies one push or set to its blocks. */
class RunApplication {
  readonly #context: ChangeContext;
  readonly #change: RunChange;
  readonly #run: FoldedRun;
  /** The type that elements are computed in. */
  readonly #computed: ComputedDtype;
  readonly #table: PieceTable;
  readonly #offsets: EntryOffsets = firstOffsets();

  constructor(context: ChangeContext, change: RunChange) {
    this.#context = context;
    this.#change = change;
    this.#run = change.run;
    this.#computed = computedAs(change.run.dtype);
    this.#table = new PieceTable(context.memory);
  }

  apply(): void {
    const { numbers } = this.#run;
    for (let place = 0; place < numbers.length; ) {
      const end = this.#groupEnd(place);
      if (end > place) {
        this.#applyGroup(place, end);
      } else {
        applyChange(this.#context, entryChange(this.#change, place, this.#offsets));
        passEntry(this.#run, place, this.#offsets);
      }
      place = Math.max(end, place + 1);
    }
  }

  /** Returns the entry behind the last one that can be changed together with this one; the entry itself if none can. */
  #groupEnd(first: number): number {
    const { counts } = this.#run;
    const lead = this.#change.blocks[first] as BlockActor;
    const rule = this.#ruleOf(lead, first);
    if (rule?.isByRow) return first;
    const isAlike = rule?.isAlike ?? true;
    const elementsMax = PIECES_BYTES_MAX / DTYPES[this.#computed].bytes;
    let [elements, pieces, end] = [0, 0, first];
    for (; end < counts.length; end++) {
      elements += counts[end] as number;
      pieces += this.#piecesOf(end);
      if (elements > elementsMax || pieces > PIECES_MAX || !this.#isSmall(end)) break;
      if (end > first && !this.#isLike(first, end, isAlike)) break;
    }
    return end;
  }

  #piecesOf(place: number): number {
    return this.#run.parts === undefined ? 1 : (this.#run.parts.rows[place] as number);
  }

  /** Whether an entry is a small block, or whole rows that are short. */
  #isSmall(place: number): boolean {
    const { parts } = this.#run;
    const dtype = this.#computed;
    if (parts === undefined) return fitsPiece(dtype, this.#run.counts[place] as number);
    const { rowElements } = (this.#change.blocks[place] as BlockActor).rows;
    return parts.innerList === undefined && fitsPiece(dtype, rowElements);
  }

  /** The rule of a gradient that is applied at once, made for the block of an entry. */
  #ruleOf(block: BlockActor, place: number): RuleRun | undefined {
    const { operation, dtype } = this.#run;
    const float = floatOf(dtype);
    if (operation?.op !== "grad" || float === undefined || waitsForStep(block)) return undefined;
    const rate = { learningRate: operation.lr, divisor: this.#change.behind?.[place] ?? 1 };
    return new RuleRun(this.#context.memory, block, float, rate);
  }

  /** Whether the arithmetic of an entry is that of another one. `isAlike`: however many updates the blocks have had. */
  #isLike(first: number, place: number, isAlike: boolean): boolean {
    const { norms } = this.#run;
    const { blocks, behind, clips } = this.#change;
    const lead = blocks[first] as BlockActor;
    const block = blocks[place] as BlockActor;
    if (block.kind !== lead.kind || (!isAlike && block.updates !== lead.updates)) return false;
    if (behind !== undefined && behind[place] !== behind[first]) return false;
    if (norms === undefined && clips === undefined) return true;
    return this.#scaleOf(block, place) === this.#scaleOf(lead, first);
  }

  /** Returns by what the gradient of an entry is multiplied before it is clipped by value. */
  #scaleOf({ config }: BlockActor, place: number): number {
    return gradientScale(config, this.#run.norms?.[place], this.#change.clips?.[place]);
  }

  /** Changes the entries from `first` to `end`, whose arithmetic is the same. */
  #applyGroup(first: number, end: number): void {
    const { memory, blocks: table } = this.#context;
    const { operation, counts } = this.#run;
    const { blocks } = this.#change;
    let elements = 0;
    for (let place = first; place < end; place++) {
      table.beforeChange(blocks[place] as BlockActor);
      elements += counts[place] as number;
    }
    const lead = blocks[first] as BlockActor;
    const waits = operation?.op === "grad" && waitsForStep(lead);
    const group = { first, end, elements };
    if (operation === undefined) {
      this.#overwrite(group);
    } else {
      stagePieces(memory, this.#run, this.#offsets.element, elements);
      if (operation.op === "mix") this.#mix(operation, group);
      else this.#applyGradients(lead, waits, group);
    }
    for (let place = first; place < end; place++) {
      const block = blocks[place] as BlockActor;
      if (operation?.op === "grad") this.#countGradient(block, place, operation, waits);
      if (!waits) block.version += 1;
      passEntry(this.#run, place, this.#offsets);
    }
  }

  /** Fills the table with the pieces of a group, of so many bytes an element, and their addresses in these slots. */
  #fillTable({ first, end }: Group, slots: readonly number[], elementBytes: number): void {
    const { parts, counts } = this.#run;
    const table = this.#table;
    table.clear();
    let { row } = this.#offsets;
    for (let place = first; place < end; place++) {
      const block = this.#change.blocks[place] as BlockActor;
      if (parts === undefined) {
        table.add((counts[place] as number) * elementBytes);
        for (let i = 0; i < slots.length; i++) table.at(i, block.slotPointer(slots[i] as number));
        continue;
      }
      const rowBytes = block.rows.rowElements * elementBytes;
      for (const rowEnd = row + (parts.rows[place] as number); row < rowEnd; row++) {
        const offset = (parts.rowList[row] as number) * rowBytes;
        table.add(rowBytes);
        for (let i = 0; i < slots.length; i++) {
          table.at(i, block.slotPointer(slots[i] as number) + offset);
        }
      }
    }
  }

  /** Bytes of an element in the blocks. */
  get #storedBytes(): number {
    return DTYPES[this.#run.dtype].bytes;
  }

  /** Bytes of an element as it is computed, and in the slots. */
  get #computedBytes(): number {
    return DTYPES[this.#computed].bytes;
  }

  #overwrite(group: Group): void {
    const { memory } = this.#context;
    const { dtype, values } = this.#run;
    const { elements } = group;
    stageValues(memory, this.#run, this.#offsets.element, elements);
    if (isFullFloat(dtype) && !isKnownFinite(values, dtype)) {
      canonical(memory, dtype, memory.scratch, elements);
    }
    this.#fillTable(group, VALUES, this.#storedBytes);
    this.#table.scatterFrom(memory.scratch, 0);
  }

  #mix({ alpha, beta }: PushOperation & { readonly op: "mix" }, group: Group): void {
    const { memory } = this.#context;
    const kernel = memory.kernels[MIX[numberOf(this.#run.dtype)]];
    this.#fillTable(group, VALUES, this.#storedBytes);
    const values = this.#gatherValues(group);
    kernel(values, memory.scratch, group.elements, alpha, beta);
    this.#scatterValues(group);
  }

  #applyGradients(lead: BlockActor, waits: boolean, group: Group): void {
    if (waits) {
      this.#fillTable(group, [lead.plan.accumulator as number], this.#computedBytes);
      this.#shape(lead, group);
      this.#add(group);
      return;
    }
    const rule = this.#ruleOf(lead, group.first);
    if (rule === undefined) {
      this.#fillTable(group, VALUES, this.#storedBytes);
      this.#add(group);
      return;
    }
    this.#shape(lead, group);
    this.#update(rule, group);
  }

  #add({ elements }: Group): void {
    const { memory } = this.#context;
    const sums = this.#table.gather(0);
    accumulate(memory.kernels, numberOf(this.#run.dtype), sums, memory.scratch, elements);
    this.#table.scatter(0);
  }

  /** Scales and clips the gradients in the scratch. */
  #shape(lead: BlockActor, { first, elements }: Group): void {
    const { memory } = this.#context;
    const scale = this.#scaleOf(lead, first);
    const dtype = this.#computed;
    if (!isFullFloat(dtype)) {
      throw new PserverError("INTERNAL", `expected floats to be scaled; received ${dtype}`);
    }
    shapeGradient(memory.kernels, dtype, memory.scratch, elements, scale, lead.config.clipValue);
  }

  #update(rule: RuleRun, group: Group): void {
    const table = this.#table;
    const isHalved = this.#storedBytes !== this.#computedBytes;
    this.#fillTable(group, rule.slots, this.#storedBytes);
    const values = this.#gatherValues(group);
    // Slots have float32 where the values are half floats, so that their pieces are longer.
    if (isHalved) this.#fillTable(group, rule.slots, this.#computedBytes);
    const columns = rule.slots.map((_slot, i) => (i === 0 ? values : table.gather(i)));
    rule.update(columns, this.#context.memory.scratch, group.elements, 0);
    for (let i = 1; i < columns.length; i++) table.scatter(i);
    if (isHalved) this.#fillTable(group, VALUES, this.#storedBytes);
    this.#scatterValues(group);
  }

  /** Gathers the values, in the type that they are computed in; returns their address. */
  #gatherValues({ elements }: Group): number {
    const { dtype } = this.#run;
    return isHalf(dtype) ? this.#table.gatherHalves(dtype, elements) : this.#table.gather(0);
  }

  /** Writes the values that {@link #gatherValues} gathered back to the blocks. */
  #scatterValues({ elements }: Group): void {
    const { dtype } = this.#run;
    if (isHalf(dtype)) this.#table.scatterHalves(dtype, elements);
    else this.#table.scatter(0);
  }

  /** Notes a gradient in its block: as one of the open step, or as an update of the block or of some rows. */
  #countGradient(
    block: BlockActor,
    place: number,
    operation: PushOperation & { readonly op: "grad" },
    waits: boolean,
  ): void {
    const { memory, trainer, steps } = this.#context;
    if (waits) {
      this.#eachRow(block, place, block.plan.touched, 1, () => 1);
      block.contributors.add(trainer);
      block.openRate = operation.lr;
      steps.noteGradient(trainer);
      return;
    }
    block.updates += 1;
    if (this.#run.parts === undefined) countUpdate(memory, block, undefined);
    else if (rowCounts(block) !== undefined) {
      this.#eachRow(block, place, block.plan.counts, 4, nextCount);
    }
  }

  /** Changes the number that a slot has for each row of an entry; of `bytes` bytes each. */
  #eachRow(
    block: BlockActor,
    place: number,
    slot: number | undefined,
    bytes: 1 | 4,
    change: (number: number) => number,
  ): void {
    if (slot === undefined) return;
    const { parts } = this.#run;
    const all = block.slotBytes(slot);
    if (parts === undefined) {
      all.fill(1);
      return;
    }
    const { row } = this.#offsets;
    const numbers = bytes === 1 ? all : new Uint32Array(all.buffer, all.byteOffset, all.length / 4);
    const end = row + (parts.rows[place] as number);
    for (let i = row; i < end; i++) {
      const at = parts.rowList[i] as number;
      numbers[at] = change(numbers[at] as number);
    }
  }
}

/** The slot of the values. */
const VALUES: readonly number[] = [0];
