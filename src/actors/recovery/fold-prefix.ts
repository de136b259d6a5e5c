import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { Credit } from "../journal/credit.ts";
import type { Journal } from "../journal/journal.ts";
import { FoldLoop } from "../owner/fold-loop.ts";
import { journalDamaged } from "../owner/hole.ts";
import { Pace } from "../owner/pace.ts";

/** How long the journal may give nothing before folding it is given up. */
const SILENCE_MS = 60_000;

/** What the prefix of a journal is folded with. */
export interface FoldPrefixOptions {
  readonly shard: Shard;
  readonly journal: Journal;
  readonly generation: number;
  /** The last record to be folded. */
  readonly to: number;
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly credit: Credit;
}

/**
 * Folds the records of a journal behind where a shard stands, up to one of them and no further.
 * @throws JOURNAL_DAMAGED if one of them is missing; UNKNOWN_RULES, TOO_LARGE as the fold does;
 * TIMEOUT if the journal gives nothing for a minute.
 */
export async function foldPrefix(options: FoldPrefixOptions): Promise<void> {
  const { shard, journal, generation, to } = options;
  if (shard.seq >= to) return;
  let stop = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => reject(silence(journal.shard, shard.seq + 1));
      let silent = setTimeout(giveUp, SILENCE_MS);
      const loop = new FoldLoop({
        ...options,
        pace: new Pace(),
        events: {
          locate: () => Promise.resolve({ stream: journal.stream(generation), generation }),
          mayFold: () => shard.seq < to,
          onSettled: () => undefined,
          onAdvanced: () => {
            clearTimeout(silent);
            silent = setTimeout(giveUp, SILENCE_MS);
            if (shard.seq >= to) resolve();
          },
          onHole: (hole) => Promise.reject(journalDamaged(journal.shard, hole.from, hole.to + 1)),
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
