/** Waits for all, so that none outlives the call. @throws the first error. */
export async function allOrFirstError<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const [only] = work;
  if (work.length === 1 && only !== undefined) return [await only];
  const results = Promise.all(work);
  await Promise.allSettled([results, ...work]);
  return await results;
}
