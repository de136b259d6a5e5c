import {
  type ContributionAccount,
  type ContributionFate,
  FATES,
  type Tally,
} from "../../src/protocol/messages/contributions.ts";
import { type JournaledRound, type JournalFacts, versionKey } from "./journal-facts.ts";
import type { LearnerEvent, LearnerLine, LearnerLog, LoggedContribution } from "./learner-log.ts";

/** What is wrong with a run. */
export interface Finding {
  readonly kind:
    | "lost"
    | "doubled"
    | "unknown"
    | "misplaced"
    | "account"
    | "value"
    | "own"
    | "writer"
    | "fallback"
    | "journal";
  readonly text: string;
}

/**
 * Compares what learners have written down with what the journals say, and the journals with themselves: no contribution
 * that was acknowledged is lost, none counts twice or came from nowhere, each has one fate and the accounts add up, and
 * whatever a learner has adopted are the bytes of that version, never the first values of a learner but those that the job
 * was given.
 * @returns what is wrong; nothing if all is right.
 */
export function checkRun(logs: readonly LearnerLog[], facts: JournalFacts): Finding[] {
  return [
    ...facts.notWhole.map((shard) => ({
      kind: "journal" as const,
      text: `the journal of shard ${shard} was replaced, or does not begin with its first record`,
    })),
    ...checkAcknowledged(logs, facts),
    ...checkMerged(logs, facts),
    ...checkAccounts(facts),
    ...checkAdopted(logs, facts),
    ...checkOrder(logs),
  ];
}

type Event<Name extends LearnerEvent["event"]> = Extract<LearnerLine, { event: Name }> & {
  readonly trainer: string;
};

/** The events of one kind in all logs, with the trainer of each. */
function eventsOf<Name extends LearnerEvent["event"]>(
  logs: readonly LearnerLog[],
  name: Name,
): Event<Name>[] {
  const isWanted = (line: LearnerLine): line is Extract<LearnerLine, { event: Name }> =>
    line.event === name;
  return logs.flatMap(({ trainer, lines }) =>
    lines.filter(isWanted).map((line) => ({ ...line, trainer })),
  );
}

type Named = LoggedContribution & { readonly trainer: string };

/** Names a contribution, which differs from all others of its trainer in what it was made from, or how long. */
function nameOf({ trainer, fragment, base, steps, tokens }: Named): string {
  return `${sourceOf({ trainer, fragment, base })} (${steps} steps, ${tokens} tokens)`;
}

/** Names from what a contribution was made: only one of each may count. */
function sourceOf({ trainer, fragment, base }: Pick<Named, "trainer" | "fragment" | "base">) {
  return `${trainer}: contribution to ${fragment} from version ${base}`;
}

/** The contributions of a round, as logs have them. */
function mergedOf({ fragment, merged }: JournaledRound): (Named & { readonly seq: number })[] {
  return merged.map((each) => ({ ...each, fragment }));
}

/** Whatever was acknowledged stands in the round that the learner was told. */
function checkAcknowledged(logs: readonly LearnerLog[], facts: JournalFacts): Finding[] {
  const rounds = new Map<string, number>();
  const sources = new Set<string>();
  for (const round of facts.rounds) {
    for (const each of mergedOf(round)) {
      rounds.set(nameOf(each), round.round);
      sources.add(sourceOf(each));
    }
  }
  const dropped = new Set(
    facts.contributions.filter(({ code }) => code === "LATE").map((each) => nameOf(each)),
  );
  return eventsOf(logs, "acknowledged").flatMap((told): Finding[] => {
    const found = rounds.get(nameOf(told));
    if (told.round === null) {
      // It is too late as well if an earlier one from the same version counts.
      if (sources.has(sourceOf(told)) || dropped.has(nameOf(told))) return [];
      const text = `${nameOf(told)} was called late, and is not in the journal as such`;
      return [{ kind: "lost", text }];
    }
    if (found === undefined) {
      const text = `${nameOf(told)} was acknowledged for round ${told.round}, and is in no round`;
      return [{ kind: "lost", text }];
    }
    if (found === told.round) return [];
    const text = `${nameOf(told)} was acknowledged for round ${told.round}, and is in round ${found}`;
    return [{ kind: "misplaced", text }];
  });
}

/** Whatever is in a round was sent, is in no other one, and is the only one from its version. */
function checkMerged(logs: readonly LearnerLog[], facts: JournalFacts): Finding[] {
  const begun = new Set(eventsOf(logs, "begun").map(nameOf));
  // A fragment lies on one shard, whose journal numbers the records.
  const recordOf = ({ fragment, seq }: { fragment: string; seq: number }) => `${fragment} ${seq}`;
  const records = new Map(facts.contributions.map((each) => [recordOf(each), each]));
  const seen = new Map<string, number>();
  const findings: Finding[] = [];
  for (const round of facts.rounds) {
    for (const { seq, ...each } of mergedOf(round)) {
      const name = nameOf(each);
      if (!begun.has(name)) {
        const text = `${name} is in round ${round.round}, and no learner has sent it`;
        findings.push({ kind: "unknown", text });
      }
      const source = sourceOf(each);
      const before = seen.get(source);
      if (before !== undefined) {
        const text = `${source} is in round ${before} and again in round ${round.round}`;
        findings.push({ kind: "doubled", text });
      }
      seen.set(source, round.round);
      const record = records.get(recordOf({ fragment: round.fragment, seq }));
      if (record?.round === round.round) continue;
      const text = `${name} was counted in round ${record?.round ?? "none"}, and is in round ${round.round}`;
      findings.push({ kind: "misplaced", text });
    }
  }
  for (const each of facts.contributions) {
    if (each.round === undefined || seen.has(sourceOf(each))) continue;
    const text = `${nameOf(each)} was counted in round ${each.round}, and is in no round`;
    findings.push({ kind: "lost", text });
  }
  return findings;
}

/** The sums of accounts that the checker makes by itself, out of records and rounds. */
type Sums = Record<ContributionFate | "open", Tally>;

const NOTHING: Tally = { contributions: 0, steps: 0, tokens: 0 };

/** What the ledger says of each trainer is what records and rounds come to, and adds up. */
function checkAccounts(facts: JournalFacts): Finding[] {
  const counted = countFates(facts);
  const trainers = new Set([...facts.accounts.keys(), ...counted.keys()]);
  return [...trainers].flatMap((trainer): Finding[] => {
    const sums = counted.get(trainer) ?? noSums();
    const accounts = facts.accounts.get(trainer) ?? [];
    const wrong = FATES.filter((fate) => !isSame(sumOf(accounts, fate), sums[fate]));
    const findings = wrong.map((fate): Finding => {
      const text = `${trainer}: expected ${show(sums[fate])} ${fate}; the ledger has ${show(sumOf(accounts, fate))}`;
      return { kind: "account", text };
    });
    const { processed, merged, late, dropped, open } = sums;
    const fates = [merged, late, dropped, open].reduce(add);
    if (!isSame(processed, fates)) {
      const text = `${trainer}: ${show(processed)} were processed, and ${show(fates)} have a fate`;
      findings.push({ kind: "account", text });
    }
    return findings;
  });
}

function countFates({ contributions, rounds }: JournalFacts): Map<string, Sums> {
  const counted = new Map<string, Sums>();
  const count = (
    trainer: string,
    fate: keyof Sums,
    { steps, tokens }: Omit<Tally, "contributions">,
  ) => {
    const sums = counted.get(trainer) ?? noSums();
    sums[fate] = add(sums[fate], { contributions: 1, steps, tokens });
    counted.set(trainer, sums);
  };
  for (const each of contributions) {
    if (each.round === undefined && each.code !== "LATE") continue;
    count(each.trainer, "processed", each);
    if (each.round === undefined) count(each.trainer, "dropped", each);
  }
  for (const { round, closedMs, merged } of rounds) {
    for (const each of merged) {
      const isLate = each.base < round - 1;
      count(each.trainer, closedMs === undefined ? "open" : isLate ? "late" : "merged", each);
    }
  }
  return counted;
}

function noSums(): Sums {
  const none = NOTHING;
  return { processed: none, merged: none, late: none, dropped: none, open: none };
}

function sumOf(accounts: readonly ContributionAccount[], fate: ContributionFate): Tally {
  return accounts.map((account) => account[fate]).reduce(add, NOTHING);
}

function add(a: Tally, b: Tally): Tally {
  return {
    contributions: a.contributions + b.contributions,
    steps: a.steps + b.steps,
    tokens: a.tokens + b.tokens,
  };
}

function isSame(a: Tally, b: Tally): boolean {
  return a.contributions === b.contributions && a.steps === b.steps && a.tokens === b.tokens;
}

function show({ contributions, steps, tokens }: Tally): string {
  return `${contributions} contributions (${steps} steps, ${tokens} tokens)`;
}

/** What was adopted are the bytes of the version, and no learner's first values but those of the one writer. */
function checkAdopted(logs: readonly LearnerLog[], facts: JournalFacts): Finding[] {
  const findings: Finding[] = [];
  const [writer, ...others] = facts.writers;
  if (writer === undefined || others.length > 0) {
    const text = `expected one trainer to give the job its values; found ${[...facts.writers].join(", ") || "none"}`;
    findings.push({ kind: "writer", text });
  }
  const owners = new Map<string, Event<"own">>();
  for (const own of eventsOf(logs, "own")) {
    for (const sum of Object.values(own.sums)) owners.set(sum, own);
  }
  for (const { trainer, life, fragment, version, sum } of eventsOf(logs, "adopted")) {
    const where = `${trainer}, life ${life}: version ${version} of ${fragment}`;
    const expected = facts.values.get(versionKey(fragment, version));
    if (expected !== sum) {
      const text = `${where}: adopted ${sum.slice(0, 12)}; the journal has ${expected?.slice(0, 12) ?? "no such version"}`;
      findings.push({ kind: "value", text });
    }
    const owner = owners.get(sum);
    if (owner === undefined || (version === 0 && owner.trainer === writer)) continue;
    const text = `${where}: adopted the first values of ${owner.trainer}, life ${owner.life}`;
    findings.push({ kind: "own", text });
  }
  for (const [key, sum] of facts.values) {
    const owner = owners.get(sum);
    if (owner === undefined || (key.endsWith(" 0") && owner.trainer === writer)) continue;
    const text = `version ${key}: the first values of ${owner.trainer}, life ${owner.life}`;
    findings.push({ kind: "own", text });
  }
  return findings;
}

/** No learner is given an earlier version than it has had. */
function checkOrder(logs: readonly LearnerLog[]): Finding[] {
  const findings: Finding[] = [];
  const newest = new Map<string, { version: number; life: number }>();
  for (const { trainer, life, fragment, version } of eventsOf(logs, "adopted")) {
    const key = `${trainer} ${fragment}`;
    const last = newest.get(key);
    const isLater = last === undefined || version > last.version;
    // A new process may begin with the version that the one before it had last.
    if (!isLater && (version < last.version || life === last.life)) {
      const text = `${trainer}, life ${life}: adopted version ${version} of ${fragment} after ${last.version}`;
      findings.push({ kind: "fallback", text });
    }
    newest.set(key, { version, life });
  }
  return findings;
}
