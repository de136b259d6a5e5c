import { once } from "node:events";
import { PserverError } from "../protocol/errors.ts";

/**
 * Passes the chunks on until `signal` aborts. Then it throws at once, even while a chunk is
 * awaited, and tells the source to stop.
 * @throws ABORTED with the signal's reason as cause; what `chunks` throws.
 */
export async function* abortable(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (signal === undefined) {
    yield* chunks;
    return;
  }
  throwIfAborted(signal);
  const stop = new AbortController();
  const aborted = once(signal, "abort", { signal: stop.signal }).then((): never => {
    throw abortedError(signal);
  });
  // It may reject between two races, when nobody listens; the next race sees it.
  aborted.catch(() => undefined);
  const iterator = chunks[Symbol.asyncIterator]();
  let finished = false;
  try {
    for (;;) {
      const result = await Promise.race([iterator.next(), aborted]);
      if (result.done === true) break;
      yield result.value;
    }
    finished = true;
  } finally {
    stop.abort();
    // Not awaited, because a source that hangs never returns. Its errors do not matter any more.
    if (!finished) iterator.return?.()?.catch(() => undefined);
  }
}

/** @throws ABORTED, with the signal's reason as cause, if it is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortedError(signal);
}

function abortedError(signal: AbortSignal): PserverError {
  return new PserverError("ABORTED", "the caller aborted the save", {}, { cause: signal.reason });
}
