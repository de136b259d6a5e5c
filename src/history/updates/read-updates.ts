import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { JobSubjects, type Position } from "../../protocol/index.ts";
import type { HistorySource } from "../source.ts";
import { JournalUpdates } from "./journal-updates.ts";
import { lastOf } from "./last-of.ts";
import { mergeArrivals, mergeSorted } from "./merge.ts";
import { shardUpdates } from "./shard-updates.ts";
import { admits, type UpdateFilter } from "./update-filter.ts";
import type { UpdateRange } from "./update-range.ts";

/** Which updates of a job are read. */
export interface UpdateQuery extends UpdateFilter, UpdateRange {
  /** Whether those after `until` are read, too, as they come, until the signal is aborted. */
  readonly follow?: boolean;
  /** Of those up to `until`, only the last so many: 1 or more. */
  readonly last?: number;
  readonly signal: AbortSignal;
}

const BEGINNING: Position = { generation: 0, seq: 0 };

/**
 * The updates of a job, some at a time, in the order of the times at which the broker stored them; of
 * several shards that order is as good as the broker's clock. Followed ones come in the order of arrival.
 * Memory does not grow with the length of the history, but with `last`.
 * @throws what the source and the fold throw; the reason of the signal.
 */
export async function* readUpdates(
  source: HistorySource,
  query: UpdateQuery,
): AsyncGenerator<readonly UpdateEvent[]> {
  const subjects = new JobSubjects(source.job);
  const { since, until, sinceMs, untilMs, follow = false, last, signal } = query;
  const shards = Array.from({ length: source.shards }, (_, shard) => {
    const history = source.shard(shard);
    const journal = new JournalUpdates(history, subjects, signal);
    const span = { after: since?.[shard] ?? BEGINNING, to: until[shard] ?? BEGINNING };
    return { history, journal, ...span, fromMs: sinceMs };
  });
  // Where a cut says it exactly, the time only spares reading.
  const leastMs = since === undefined ? sinceMs : 0;
  const wanted = (events: readonly UpdateEvent[]): readonly UpdateEvent[] =>
    events.filter(
      (event) =>
        admits(query, event) &&
        (leastMs === 0 || event.timeMs > leastMs) &&
        event.timeMs <= untilMs,
    );
  const past = async function* (): AsyncGenerator<readonly UpdateEvent[]> {
    const sources = shards.map(({ history, journal, ...span }) =>
      shardUpdates(history, journal, span, signal),
    );
    for await (const events of mergeSorted(sources, ({ timeMs }) => timeMs)) yield wanted(events);
  };
  yield* last === undefined ? past() : lastOf(past(), last);
  if (!follow) return;
  const present = shards.map(({ journal, to }) => journal.follow(to));
  for await (const events of mergeArrivals(present)) yield wanted(events);
}
