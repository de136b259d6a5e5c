import type { ShardHistory, StoredTapeMessage } from "../source.ts";

/**
 * The messages of a source's tape after one that was copied from it; all if none was. Where the source has
 * another one in its place, as the end of its tape was lost and written anew, they are those stored at that
 * time or later: lines that are read twice are skipped by whoever reads them.
 * @throws what the source throws; the reason of `signal`.
 */
export async function* readTapeAfter(
  history: Pick<ShardHistory, "readTape">,
  last: StoredTapeMessage | undefined,
  signal: AbortSignal,
): AsyncGenerator<StoredTapeMessage, void, undefined> {
  const fromMs = last?.timeMs ?? 0;
  if (last !== undefined) {
    const { seq } = last;
    let isFollowed = false;
    for await (const message of history.readTape?.({ kind: "message", seq }, signal) ?? []) {
      if (isFollowed) yield message;
      else if (isSame(message, last)) isFollowed = true;
      else break;
    }
    if (isFollowed) return;
  }
  yield* history.readTape?.({ kind: "time", timeMs: fromMs }, signal) ?? [];
}

function isSame(a: StoredTapeMessage, b: StoredTapeMessage): boolean {
  return a.seq === b.seq && a.timeMs === b.timeMs && Buffer.compare(a.data, b.data) === 0;
}
