import { FORMER } from "../actors/fold/fragments/ledger.ts";
import type { FoldedRecord, FoldObserver } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { type ErrorCode, JobSubjects, type Position, PserverError } from "../protocol/index.ts";
import {
  type ContributionAccount,
  type ContributionFate,
  NO_ACCOUNT,
  parseContribution,
  sumOfAccounts,
  sumOfTallies,
  type Tally,
} from "../protocol/messages/contributions.ts";
import type { Cut } from "./points.ts";
import { foldRecords, loadBase } from "./replay/replay-shard.ts";
import { type HistorySource, startOf, takeInventory } from "./source.ts";

/** Why a contribution was dropped: the code that its trainer was told, or that the fragment got other parameters. */
type DropReason = ErrorCode | "PARAMETERS_CHANGED";

/** A contribution and what has become of it. */
export interface LedgerEntry {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
  readonly trainer: string;
  readonly fragment: string;
  readonly base: number;
  readonly steps: number;
  readonly tokens: number;
  /** The round that it was taken into; undefined if it was dropped at once. */
  readonly round: number | undefined;
  /** `open` while its round is. */
  readonly fate: Exclude<ContributionFate, "processed"> | "open";
  readonly reason: DropReason | undefined;
}

/** What became of a trainer's contributions to one fragment. */
export interface FragmentReceipt {
  readonly trainer: string;
  readonly fragment: string;
  readonly account: ContributionAccount;
  readonly open: Tally;
  /** How many were dropped for each reason. */
  readonly reasons: ReadonlyMap<DropReason, number>;
  /** The rounds in which its contributions count, ascending. */
  readonly rounds: readonly number[];
}

/** An account of a trainer in one shard that contradicts the contributions that were found, or itself. */
export interface LedgerFinding {
  readonly shard: number;
  readonly trainer: string;
  readonly problem: string;
}

/** What became of the contributions to a job. */
export interface ContributionLedger {
  /** By trainer and fragment. */
  readonly receipts: readonly FragmentReceipt[];
  /** Accounts of contributions that came before the records that are kept, by trainer. */
  readonly earlier: ReadonlyMap<string, ContributionAccount>;
  readonly findings: readonly LedgerFinding[];
}

/** Options of {@link readLedger}. */
export interface LedgerOptions {
  readonly until: Cut;
  readonly signal: AbortSignal;
  /** Only the contributions of this trainer. */
  readonly trainer?: string | undefined;
  /** Called with each contribution once its fate is known, or at the end with those of open rounds. */
  readonly onEntry: (entry: LedgerEntry) => void;
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/**
 * Folds the journals of a job again, as far as they are kept, and says of every contribution what has become of it. Checks
 * that for each trainer processed = merged + late + dropped + open, in the contributions that were found and in the
 * accounts of the fold.
 * @throws UNSUPPORTED for a job without fragments; as `replayShard`, with SNAPSHOT_DAMAGED for a snapshot whose accounts
 * do not add up.
 */
export async function readLedger(
  source: HistorySource,
  options: LedgerOptions,
): Promise<ContributionLedger> {
  const { mode } = source.synchronization;
  if (mode !== "diloco") {
    const text = `expected a job whose trainers contribute to fragments; this one is ${mode}`;
    throw new PserverError("UNSUPPORTED", text, { expected: "diloco", received: mode });
  }
  const receipts = new Receipts(options);
  const earlier = new Map<string, ContributionAccount>();
  const findings: LedgerFinding[] = [];
  const subjects = new JobSubjects(source.job);
  const { until, signal, trainer: wanted } = options;
  const spans = await Promise.all(
    Array.from({ length: source.shards }, async (_, number) => {
      const to = until[number];
      if (to === undefined) throw new PserverError("INTERNAL", `the cut has no shard ${number}`);
      const history = source.shard(number);
      return { history, from: startOf(await takeInventory(history), to), to };
    }),
  );
  const total = spans.reduce((sum, { from, to }) => sum + to.seq - from.seq, 0);
  let done = 0;
  for (const [number, { history, from, to }] of spans.entries()) {
    const shard = await loadBase(history, from, { subjects, signal });
    const first = new Map(shard.fragments.ledger.sorted());
    for (const [trainer, account] of first) {
      if (wanted !== undefined && trainer !== wanted) continue;
      earlier.set(trainer, sumOfAccounts([earlier.get(trainer) ?? NO_ACCOUNT, account]));
    }
    const watcher = new ContributionWatcher(shard, number, to.generation, receipts);
    shard.observers = [watcher];
    const baseSeq = shard.seq;
    const before = done;
    const onFolded = (seq: number): void => options.onProgress?.(before + seq - baseSeq, total);
    await foldRecords(shard, history, to, { signal, onFolded, visitor: watcher });
    done += to.seq - from.seq;
    watcher.end();
    const found = accountFindings(shard, first, watcher.accounts);
    findings.push(...found.map((finding) => ({ shard: number, ...finding })));
  }
  return { receipts: receipts.sorted(), earlier, findings };
}

/** A contribution before its fate is known. */
interface TakenEntry extends Omit<LedgerEntry, "fate" | "reason"> {
  /** Whether it was in an open round before the first record. */
  readonly isEarlier: boolean;
}

/** What the contributions of a trainer that were found in a shard come to. Those in `account.processed` came in its records. */
interface FoundAccount {
  readonly account: ContributionAccount;
  readonly open: Tally;
}

const NOTHING: FoundAccount = { account: NO_ACCOUNT, open: NO_ACCOUNT.processed };

/** Watches a shard while it is folded, and tells the fate of each contribution. */
class ContributionWatcher implements FoldObserver {
  readonly measures = false;
  readonly accounts: Map<string, FoundAccount> = new Map();
  readonly #shard: Shard;
  readonly #number: number;
  readonly #generation: number;
  readonly #receipts: Receipts;
  /** The contributions in the open round of each fragment, in the order of the journal. */
  readonly #open: Map<string, TakenEntry[]> = new Map();
  #dropped: number;
  #failure: unknown;

  constructor(shard: Shard, number: number, generation: number, receipts: Receipts) {
    this.#shard = shard;
    this.#number = number;
    this.#generation = generation;
    this.#receipts = receipts;
    this.#dropped = this.#droppedNow();
    for (const { name, version, round } of shard.fragments.all()) {
      const entries = round.map(({ trainer, seq, base, steps, tokens }) => ({
        ...{ shard: number, position: { generation, seq }, timeMs: 0 },
        ...{ trainer, fragment: name, base, steps, tokens, round: version + 1 },
        isEarlier: true,
      }));
      if (entries.length > 0) this.#open.set(name, entries);
    }
  }

  observe(folded: FoldedRecord): void {
    if (folded.kind === "host" && folded.closed !== undefined) {
      const { fragment, round, merged } = folded.closed;
      const entries = this.#open.get(fragment) ?? [];
      this.#open.delete(fragment);
      for (const [i, { base }] of merged.entries()) {
        const entry = entries[i];
        if (entry !== undefined) this.#tell(entry, base < round - 1 ? "late" : "merged");
      }
    }
    if (folded.kind !== "trainer" || folded.subject.by !== "contribute" || folded.isRepeat) return;
    const { contributed, outcome, subject, message, seq, timeMs } = folded;
    const dropped = this.#droppedNow();
    const isDropped = dropped > this.#dropped;
    this.#dropped = dropped;
    const round = contributed?.round ?? 0;
    if (!isDropped && round === 0) return;
    const { fragment, base, steps, tokens } = parseContribution(message.fields);
    const entry: TakenEntry = {
      ...{ shard: this.#number, position: { generation: this.#generation, seq }, timeMs },
      ...{ trainer: subject.trainer, fragment, base, steps, tokens },
      round: isDropped ? undefined : round,
      isEarlier: false,
    };
    if (isDropped) this.#tell(entry, "dropped", outcome.code);
    else this.#open.set(fragment, [...(this.#open.get(fragment) ?? []), entry]);
  }

  failed(_folded: FoldedRecord, error: PserverError): void {
    this.#failure ??= error;
  }

  /** Notices rounds that were dropped because the fragment has got other parameters. */
  after(): void {
    if (this.#failure !== undefined) throw this.#failure;
    for (const [fragment, entries] of this.#open) {
      if ((this.#shard.fragments.get(fragment)?.round.length ?? 0) > 0) continue;
      this.#open.delete(fragment);
      for (const entry of entries) this.#tell(entry, "dropped", "PARAMETERS_CHANGED");
    }
    this.#dropped = this.#droppedNow();
  }

  /** Tells which contributions are in open rounds. */
  end(): void {
    for (const entries of this.#open.values()) {
      for (const entry of entries) this.#tell(entry, "open");
    }
  }

  #tell(taken: TakenEntry, fate: LedgerEntry["fate"], reason?: DropReason): void {
    const { isEarlier, ...entry } = taken;
    const { trainer } = entry;
    const { account, open } = this.accounts.get(trainer) ?? NOTHING;
    const own = { contributions: 1, steps: entry.steps, tokens: entry.tokens };
    const processed = isEarlier ? account.processed : sumOfTallies(account.processed, own);
    this.accounts.set(
      trainer,
      fate === "open"
        ? { account: { ...account, processed }, open: sumOfTallies(open, own) }
        : { account: { ...account, processed, [fate]: sumOfTallies(account[fate], own) }, open },
    );
    this.#receipts.add({ ...entry, fate, reason });
  }

  #droppedNow(): number {
    return this.#shard.fragments.ledger.total.dropped.contributions;
  }
}

/**
 * Compares the accounts of a shard with what they were and the contributions that were found since, and with themselves.
 * Accounts that have joined that of former trainers are compared as a sum.
 */
export function accountFindings(
  { fragments }: Pick<Shard, "fragments">,
  first: ReadonlyMap<string, ContributionAccount>,
  found: ReadonlyMap<string, FoundAccount>,
): Omit<LedgerFinding, "shard">[] {
  const { ledger } = fragments;
  const joined = tallyText(ledger.of(FORMER)) !== tallyText(first.get(FORMER) ?? NO_ACCOUNT);
  const names = new Set([...first.keys(), ...found.keys(), ...ledger.sorted().map(([id]) => id)]);
  const open = (trainer: string): Tally => found.get(trainer)?.open ?? NO_ACCOUNT.processed;
  if (!joined) {
    return [...names].flatMap((trainer) => {
      const before = first.get(trainer) ?? NO_ACCOUNT;
      const expected = sumOfAccounts([before, found.get(trainer)?.account ?? NO_ACCOUNT]);
      const problem = problemOf(ledger.of(trainer), expected, open(trainer));
      return problem === undefined ? [] : [{ trainer, problem }];
    });
  }
  const accounts = [...found.values()].map(({ account }) => account);
  const expected = sumOfAccounts([...first.values(), ...accounts]);
  const allOpen = [...found.keys()].map(open).reduce(sumOfTallies, NO_ACCOUNT.processed);
  const problem = problemOf(ledger.total, expected, allOpen);
  return problem === undefined ? [] : [{ trainer: "all", problem }];
}

function problemOf(
  account: ContributionAccount,
  expected: ContributionAccount,
  open: Tally,
): string | undefined {
  if (tallyText(account) !== tallyText(expected)) {
    return `expected ${tallyText(expected)} as was found; received ${tallyText(account)}`;
  }
  const fates = [account.merged, account.late, account.dropped, open].reduce(sumOfTallies);
  if (textOf(fates) === textOf(account.processed)) return undefined;
  return `processed is ${textOf(account.processed)}, but merged, late, dropped and open are ${textOf(fates)}`;
}

function tallyText({ processed, merged, late, dropped }: ContributionAccount): string {
  return (
    `processed ${textOf(processed)}, merged ${textOf(merged)}, late ${textOf(late)}, ` +
    `dropped ${textOf(dropped)}`
  );
}

function textOf({ contributions, steps, tokens }: Tally): string {
  return `${contributions} of ${steps} steps and ${tokens} tokens`;
}

/** Adds up what became of contributions, by trainer and fragment. */
class Receipts {
  readonly #options: Pick<LedgerOptions, "trainer" | "onEntry">;
  readonly #receipts: Map<string, GrowingReceipt> = new Map();

  constructor(options: Pick<LedgerOptions, "trainer" | "onEntry">) {
    this.#options = options;
  }

  add(entry: LedgerEntry): void {
    const { trainer, fragment, steps, tokens, fate, reason, round } = entry;
    if (this.#options.trainer !== undefined && this.#options.trainer !== trainer) return;
    this.#options.onEntry(entry);
    const key = `${trainer}\n${fragment}`;
    const receipt = this.#receipts.get(key) ?? newReceipt(trainer, fragment);
    this.#receipts.set(key, receipt);
    const own = { contributions: 1, steps, tokens };
    receipt.account = {
      ...receipt.account,
      processed: sumOfTallies(receipt.account.processed, own),
      ...(fate === "open" ? {} : { [fate]: sumOfTallies(receipt.account[fate], own) }),
    };
    if (fate === "open") receipt.open = sumOfTallies(receipt.open, own);
    if (reason !== undefined) receipt.reasons.set(reason, (receipt.reasons.get(reason) ?? 0) + 1);
    else if (round !== undefined) receipt.rounds.push(round);
  }

  sorted(): FragmentReceipt[] {
    const sorted = [...this.#receipts].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([, { rounds, ...receipt }]) => {
      return { ...receipt, rounds: [...new Set(rounds)].sort((a, b) => a - b) };
    });
  }
}

interface GrowingReceipt extends FragmentReceipt {
  account: ContributionAccount;
  open: Tally;
  readonly reasons: Map<DropReason, number>;
  readonly rounds: number[];
}

function newReceipt(trainer: string, fragment: string): GrowingReceipt {
  const nothing = { account: NO_ACCOUNT, open: NO_ACCOUNT.processed };
  return { trainer, fragment, ...nothing, reasons: new Map(), rounds: [] };
}
