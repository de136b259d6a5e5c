import { DTYPES, encodedBytes } from "../../../protocol/dtypes.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import { computedAs } from "../elements.ts";
import { MEASURED, measureInto } from "../statistics.ts";
import { stagePieces } from "./pieces.ts";
import type { FoldedRun } from "./run-change.ts";

/** Bytes of elements that are measured in one call. */
const ELEMENTS_BYTES = 64 * 1024;
/** Entries that are measured in one call. */
const ENTRIES_MAX = 1024;
// Offsets in the scratch, behind the elements.
const COUNTS = ELEMENTS_BYTES;
const RESULTS = COUNTS + ENTRIES_MAX * 4;
const RESULT_BYTES = MEASURED * 8;

/**
 * Measures the values of each entry of a run, many small ones in one call of a kernel; returns {@link MEASURED} numbers
 * for each. Undefined where that throws: the fold must do the same with and without an observer, and whoever describes
 * the record measures it again.
 */
export function measureRun(memory: ShardMemory, run: FoldedRun): Float64Array | undefined {
  try {
    return measured(memory, run);
  } catch {
    return undefined;
  }
}

function measured(memory: ShardMemory, run: FoldedRun): Float64Array {
  const { counts, dtype, encoding, values } = run;
  const results = new Float64Array(counts.length * MEASURED);
  const elementBytes = DTYPES[computedAs(dtype)].bytes;
  const wireBytes = encodedBytes(dtype, encoding, 1);
  let element = 0;
  for (let place = 0; place < counts.length; ) {
    const elementsMax = ELEMENTS_BYTES / elementBytes;
    const end = endOfCall(counts, place, elementsMax);
    if (end === place) {
      const start = element * wireBytes;
      const count = counts[place] as number;
      const bytes = values.subarray(start, start + count * wireBytes);
      measureInto(memory, { dtype, encoding, bytes }, results, place * MEASURED);
      element += count;
      place += 1;
      continue;
    }
    const elements = measureCall(memory, run, { place, end, element }, results);
    element += elements;
    place = end;
  }
  return results;
}

/** Returns the entry behind the last one that fits into a call with this first one; the first itself if it does not. */
function endOfCall(counts: Uint32Array, first: number, elementsMax: number): number {
  let elements = 0;
  let end = first;
  while (end < counts.length && end - first < ENTRIES_MAX) {
    elements += counts[end] as number;
    if (elements > elementsMax) break;
    end += 1;
  }
  return end;
}

/** Measures the entries from `place` to `end`; returns the number of their elements. */
function measureCall(
  memory: ShardMemory,
  run: FoldedRun,
  { place, end, element }: { place: number; end: number; element: number },
  results: Float64Array,
): number {
  const n = end - place;
  const counts = run.counts.subarray(place, end);
  const elements = counts.reduce((sum, count) => sum + count, 0);
  const { scratch, kernels } = memory;
  stagePieces(memory, run, element, elements);
  const lengths = memory.bytes(scratch + COUNTS, n * 4);
  new Uint32Array(lengths.buffer, lengths.byteOffset, n).set(counts);
  const to = scratch + RESULTS;
  kernels.measurePieces(to, scratch, scratch + COUNTS, n, DTYPES[computedAs(run.dtype)].code);
  const found = memory.bytes(to, n * RESULT_BYTES);
  const measured = new Float64Array(found.buffer, found.byteOffset, n * MEASURED);
  results.set(measured, place * MEASURED);
  return elements;
}
