/** A source of batches, with the batch that its next element comes from. */
interface MergeInput<T> {
  readonly batches: AsyncIterator<readonly T[]>;
  batch: readonly T[];
  at: number;
}

/**
 * Elements of several sources, each in the order of `keyOf`, in the order of `keyOf`; of equal ones, those of
 * the earlier source first. Takes from each source no more than a batch ahead. Ends all sources when it ends.
 */
export async function* mergeSorted<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
  keyOf: (element: T) => number,
): AsyncGenerator<readonly T[]> {
  const opened = sources.map((source): MergeInput<T> => {
    return { batches: source[Symbol.asyncIterator](), batch: [], at: 0 };
  });
  try {
    const filled = await Promise.all(opened.map((input) => refill(input)));
    let inputs = opened.filter((_, i) => filled[i]);
    while (inputs.length > 0) {
      const { merged, empty } = mergeUntilEmpty(inputs, keyOf);
      if (merged.length > 0) yield merged;
      if (!(await refill(empty))) inputs = inputs.filter((input) => input !== empty);
    }
  } finally {
    await Promise.all(opened.map(({ batches }) => batches.return?.()));
  }
}

/** Gives the input its next batch that has elements; false at its end. */
async function refill<T>(input: MergeInput<T>): Promise<boolean> {
  for (;;) {
    const next = await input.batches.next();
    if (next.done === true) return false;
    if (next.value.length === 0) continue;
    input.batch = next.value;
    input.at = 0;
    return true;
  }
}

/** Takes elements in order until the batch of one input is used up. */
function mergeUntilEmpty<T>(
  inputs: readonly MergeInput<T>[],
  keyOf: (element: T) => number,
): { merged: readonly T[]; empty: MergeInput<T> } {
  const merged: T[] = [];
  for (;;) {
    let least: MergeInput<T> | undefined;
    let leastKey = Number.POSITIVE_INFINITY;
    for (const input of inputs) {
      const key = keyOf(input.batch[input.at] as T);
      if (least !== undefined && key >= leastKey) continue;
      least = input;
      leastKey = key;
    }
    if (least === undefined) throw new RangeError("nothing to merge");
    merged.push(least.batch[least.at] as T);
    least.at += 1;
    if (least.at === least.batch.length) return { merged, empty: least };
  }
}

/** Batches of several sources as they come. Ends all sources when it ends. */
export async function* mergeArrivals<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
): AsyncGenerator<readonly T[]> {
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const next = async (
    at: number,
  ): Promise<{ at: number; result: IteratorResult<readonly T[]> }> => {
    const result = (await iterators[at]?.next()) ?? { done: true, value: undefined };
    return { at, result };
  };
  const pending = new Map(iterators.map((_, at) => [at, next(at)]));
  // A source that fails while another one's batch is used is heard of at the next turn.
  for (const promise of pending.values()) promise.catch(() => undefined);
  try {
    while (pending.size > 0) {
      const { at, result } = await Promise.race(pending.values());
      if (result.done === true) {
        pending.delete(at);
        continue;
      }
      const following = next(at);
      following.catch(() => undefined);
      pending.set(at, following);
      yield result.value;
    }
  } finally {
    for (const iterator of iterators) void iterator.return?.(undefined)?.catch(() => undefined);
  }
}
