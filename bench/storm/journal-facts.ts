import { createHash } from "node:crypto";
import type { FoldedRecord, FoldObserver } from "../../src/actors/fold/journal-record.ts";
import { Shard } from "../../src/actors/fold/shard.ts";
import { openHistory } from "../../src/history/open-journal.ts";
import { foldRecords } from "../../src/history/replay/replay-shard.ts";
import type { HistorySource } from "../../src/history/source.ts";
import { type ErrorCode, JobSubjects, type PserverError } from "../../src/protocol/index.ts";
import {
  type ContributionAccount,
  parseContribution,
} from "../../src/protocol/messages/contributions.ts";

/** A contribution in the journal that was complete and no repeat. */
interface JournaledContribution {
  readonly trainer: string;
  readonly fragment: string;
  readonly base: number;
  readonly steps: number;
  readonly tokens: number;
  readonly shard: number;
  readonly seq: number;
  /** When the broker stored its last record, in milliseconds since 1970. */
  readonly timeMs: number;
  /** The round that it counts in; undefined if it was rejected. */
  readonly round: number | undefined;
  /** Why it was rejected. */
  readonly code: ErrorCode | undefined;
}

/** A round that a record has closed, or the open round of a fragment at the end of the journal. */
export interface JournaledRound {
  readonly fragment: string;
  readonly round: number;
  /** When the broker stored the record that has closed it; undefined for an open round. */
  readonly closedMs: number | undefined;
  /** The contributions in it, as the fold has them. */
  readonly merged: readonly {
    readonly trainer: string;
    readonly base: number;
    readonly seq: number;
    readonly steps: number;
    readonly tokens: number;
  }[];
}

/** What the journals of a job say, folded from their first records by the code that hosts fold with. */
export interface JournalFacts {
  readonly contributions: readonly JournaledContribution[];
  readonly rounds: readonly JournaledRound[];
  /** SHA-256 of the elements of each version of each fragment, by {@link versionKey}. */
  readonly values: ReadonlyMap<string, string>;
  /** What became of the contributions of each trainer, all shards together. */
  readonly accounts: ReadonlyMap<string, readonly ContributionAccount[]>;
  /** The trainers that have changed values by anything but contributions. */
  readonly writers: ReadonlySet<string>;
  /** The members of the job as shards were told, in the order of each journal. */
  readonly members: readonly { readonly timeMs: number; readonly trainers: readonly string[] }[];
  /** Shards whose journals do not begin with their first records, or were replaced. */
  readonly notWhole: readonly number[];
}

/** Names a version of a fragment. */
export function versionKey(fragment: string, version: number): string {
  return `${fragment} ${version}`;
}

/** Folds the whole journals of a job that a broker holds; changes nothing. */
export async function readJournalFacts(url: string, job: string): Promise<JournalFacts> {
  const connection = { servers: [url], timeoutMs: 10_000 };
  const source = await openHistory({ kind: "broker", connection, job });
  try {
    const reader = new FactReader();
    for (let shard = 0; shard < source.shards; shard++) await reader.read(source, shard);
    return reader;
  } finally {
    await source.close();
  }
}

/** Collects what is folded, shard after shard. */
class FactReader implements JournalFacts, FoldObserver {
  readonly measures = false;
  readonly contributions: JournaledContribution[] = [];
  readonly rounds: JournaledRound[] = [];
  readonly values: Map<string, string> = new Map();
  readonly accounts: Map<string, ContributionAccount[]> = new Map();
  readonly writers: Set<string> = new Set();
  readonly members: { timeMs: number; trainers: readonly string[] }[] = [];
  readonly notWhole: number[] = [];
  #shard = 0;
  /** The fragment that the record which is being folded changes, or contributes to. */
  #touched: string | undefined;
  #failure: PserverError | undefined;

  async read(source: HistorySource, number: number): Promise<void> {
    this.#shard = number;
    const history = source.shard(number);
    const [span, ...others] = await history.spans();
    if (span === undefined || others.length > 0 || span.generation !== 1 || span.firstSeq !== 1) {
      this.notWhole.push(number);
      return;
    }
    const shard = Shard.create({ subjects: new JobSubjects(source.job), shard: number });
    shard.observers = [this];
    const { signal } = new AbortController();
    const visitor = {
      before: () => {
        this.#touched = undefined;
      },
      after: () => {
        if (this.#touched !== undefined) this.#noteValues(shard, this.#touched);
      },
    };
    const end = { generation: span.generation, seq: span.lastSeq };
    await foldRecords(shard, history, end, { signal, visitor });
    if (this.#failure !== undefined) throw this.#failure;
    for (const [fragment] of shard.fragmentVersions()) this.#noteValues(shard, fragment);
    for (const { name, version, round } of shard.fragments.all()) {
      this.rounds.push({
        ...{ fragment: name, round: version + 1, closedMs: undefined, merged: [...round] },
      });
    }
    for (const [trainer, account] of shard.fragments.ledger.sorted()) {
      this.accounts.set(trainer, [...(this.accounts.get(trainer) ?? []), account]);
    }
  }

  observe(folded: FoldedRecord): void {
    const { seq, timeMs } = folded;
    if (folded.kind === "host" && folded.closed !== undefined) {
      this.rounds.push({ ...folded.closed, closedMs: timeMs });
      this.#touched = folded.closed.fragment;
    }
    if (folded.kind === "host" && folded.record.verb === "members") {
      this.members.push({ timeMs, trainers: folded.record.trainers });
    }
    if (folded.kind !== "trainer" || folded.isRepeat) return;
    const { subject, message, contributed, outcome } = folded;
    const { trainer } = subject;
    if (subject.by === "contribute") {
      // A part that does not complete its contribution counts nowhere yet.
      if (contributed?.round === 0) return;
      const { fragment, base, steps, tokens } = parseContribution(message.fields);
      const what = { trainer, fragment, base, steps, tokens, shard: this.#shard, seq, timeMs };
      this.contributions.push({ ...what, round: contributed?.round, code: outcome.code });
      this.#touched = fragment;
    } else if (subject.by !== "clock" && subject.by !== "note" && outcome.code === undefined) {
      this.writers.add(trainer);
    }
  }

  failed(_record: FoldedRecord, error: PserverError): void {
    this.#failure ??= error;
  }

  /** Notes the values of the present version of a fragment, unless they are known. */
  #noteValues(shard: Shard, fragment: string): void {
    const key = versionKey(fragment, shard.fragmentVersion(fragment) ?? 0);
    if (this.values.has(key)) return;
    const own = shard.saveState().blocks.filter(({ config }) => config.fragment === fragment);
    const sorted = own.sort((a, b) =>
      a.parameter === b.parameter ? a.index - b.index : a.parameter < b.parameter ? -1 : 1,
    );
    const hash = createHash("sha256");
    for (const { parameter, index } of sorted) {
      const block = shard.block(parameter, index);
      if (block !== undefined) hash.update(block.slotBytes(0));
    }
    this.values.set(key, hash.digest("hex"));
  }
}
