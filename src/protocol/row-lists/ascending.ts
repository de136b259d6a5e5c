import { rowListMemory } from "./row-kernels.ts";

/** Shorter lists are checked faster one by one than copied for the kernel. */
const LIST_MIN = 64;
const NUMBER_BYTES = 4;
/** Numbers checked at a time; few enough to stay in a near cache. */
const CHUNK_NUMBERS = 16_384;

/** Whether each number is greater than the one before. */
export function isAscending(numbers: ArrayLike<number>): boolean {
  if (numbers instanceof Uint32Array && numbers.length >= LIST_MIN) return isAscendingList(numbers);
  for (let i = 1; i < numbers.length; i++) {
    if ((numbers[i] as number) <= (numbers[i - 1] as number)) return false;
  }
  return true;
}

function isAscendingList(numbers: Uint32Array): boolean {
  const { kernels, start, buffer } = rowListMemory(CHUNK_NUMBERS * NUMBER_BYTES);
  // Chunks overlap by a number, so that all neighbours are compared.
  for (let at = 0; at < numbers.length - 1; at += CHUNK_NUMBERS - 1) {
    const chunk = numbers.subarray(at, at + CHUNK_NUMBERS);
    new Uint32Array(buffer, start, chunk.length).set(chunk);
    if (kernels.ascending(start, chunk.length) === 0) return false;
  }
  return true;
}
