import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import type { NotedChecksum } from "../fold/journal-checksum.ts";
import type { Shard } from "../fold/shard.ts";
import type { Credit } from "../journal/credit.ts";
import type { Journal } from "../journal/journal.ts";
import { JournalReader } from "../journal/reader.ts";
import { FoldLoop } from "../owner/fold-loop.ts";
import { journalDamaged } from "../owner/journal-gap.ts";
import { Pace } from "../owner/pace.ts";

/** Time without a record after which folding gives up. */
const SILENCE_MS = 60_000;

/** Dependencies of {@link foldPrefix}. */
export interface FoldPrefixDeps {
  readonly shard: Shard;
  readonly journal: Journal;
  readonly generation: number;
  /** Last record to fold. */
  readonly to: number;
  /** What was noted of the journal when it was folded before, ascending. */
  readonly noted: readonly NotedChecksum[];
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly credit: Credit;
}

/**
 * Folds the next records of a journal up to record `to`.
 * @throws JOURNAL_DAMAGED if one of them is missing or has changed; UNKNOWN_RULES, TOO_LARGE as the fold;
 * TIMEOUT after a minute without a record.
 */
export async function foldPrefix(deps: FoldPrefixDeps): Promise<void> {
  const { shard, journal, generation, to, noted } = deps;
  if (shard.seq >= to) return;
  let stop = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => reject(silence(journal.shard, shard.seq + 1));
      let silent = setTimeout(giveUp, SILENCE_MS);
      const loop = new FoldLoop({
        number: journal.shard,
        shard,
        reader: new JournalReader(deps),
        pace: new Pace(),
        events: {
          locate: () => Promise.resolve({ stream: journal.stream(generation), generation, noted }),
          mayFold: () => shard.seq < to,
          onSettled: () => undefined,
          onAdvanced: () => {
            clearTimeout(silent);
            silent = setTimeout(giveUp, SILENCE_MS);
            if (shard.seq >= to) resolve();
          },
          onGap: ({ from, to }) => Promise.reject(journalDamaged(journal.shard, from, to + 1)),
          onFailure: reject,
        },
      });
      stop = () => {
        clearTimeout(silent);
        loop.stop();
      };
      void loop.start();
    });
  } finally {
    stop();
  }
}

function silence(shard: number, seq: number): PserverError {
  return new PserverError(
    "TIMEOUT",
    `shard ${shard}: record ${seq} was not read within ${SILENCE_MS} ms`,
    { shard, seq },
  );
}
