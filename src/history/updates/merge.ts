/** A source of batches, with the batch that its next element comes from. */
interface Lane<T> {
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
  const opened = sources.map((source): Lane<T> => {
    return { batches: source[Symbol.asyncIterator](), batch: [], at: 0 };
  });
  try {
    const filled = await Promise.all(opened.map((lane) => refill(lane)));
    let lanes = opened.filter((_, i) => filled[i]);
    while (lanes.length > 0) {
      const { merged, empty } = mergeUntilEmpty(lanes, keyOf);
      if (merged.length > 0) yield merged;
      if (!(await refill(empty))) lanes = lanes.filter((lane) => lane !== empty);
    }
  } finally {
    await Promise.all(opened.map(({ batches }) => batches.return?.()));
  }
}

/** Gives the lane its next batch that has elements; false at its end. */
async function refill<T>(lane: Lane<T>): Promise<boolean> {
  for (;;) {
    const next = await lane.batches.next();
    if (next.done === true) return false;
    if (next.value.length === 0) continue;
    lane.batch = next.value;
    lane.at = 0;
    return true;
  }
}

/** Takes elements in order until the batch of one lane is used up. */
function mergeUntilEmpty<T>(
  lanes: readonly Lane<T>[],
  keyOf: (element: T) => number,
): { merged: readonly T[]; empty: Lane<T> } {
  const merged: T[] = [];
  for (;;) {
    let least: Lane<T> | undefined;
    let leastKey = Number.POSITIVE_INFINITY;
    for (const lane of lanes) {
      const key = keyOf(lane.batch[lane.at] as T);
      if (least !== undefined && key >= leastKey) continue;
      least = lane;
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
