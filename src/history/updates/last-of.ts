/**
 * The last elements of batches, as one batch once they have ended. Remembers no more than `count`.
 * `count`: 1 or more.
 */
export async function* lastOf<T>(
  batches: AsyncIterable<readonly T[]>,
  count: number,
): AsyncGenerator<readonly T[]> {
  let last: T[] = [];
  for await (const batch of batches) {
    for (const element of batch) last.push(element);
    // Cut now and then: a cut copies what is kept.
    if (last.length > 2 * count) last = last.slice(-count);
  }
  if (last.length > 0) yield last.slice(-count);
}
