/** Small requests that are under way at one time. */
export const REQUESTS_AT_ONCE = 64;

/**
 * `run` for every item, `atOnce` at a time; results in the order of the items.
 * After the first failure no further item is begun, and it is thrown once all that were under way
 * have ended.
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
