/** Small requests under way at one time. */
export const REQUESTS_AT_ONCE = 64;

/**
 * Calls `run` for every item, `atOnce` at a time; returns the results in the order of the items.
 * After the first failure no further item is begun. It is thrown once all calls under way have ended.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
  atOnce: number = REQUESTS_AT_ONCE,
): Promise<Result[]> {
  const results: Result[] = new Array(items.length);
  let next = 0;
  let failed = false;
  const work = async (): Promise<void> => {
    while (!failed && next < items.length) {
      const at = next++;
      try {
        results[at] = await run(items[at] as Item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, work);
  const ended = await Promise.allSettled(workers);
  for (const end of ended) if (end.status === "rejected") throw end.reason;
  return results;
}
