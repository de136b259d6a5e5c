import type {
  FoundJournal,
  FoundSnapshot,
  LackedBlock,
  Lost,
  RecoveryChoice,
  Tally,
} from "./findings.ts";

/** Findings that determine the choices of a shard. */
export interface ChoiceFacts {
  readonly generation: number;
  /** Newest first. */
  readonly snapshots: readonly FoundSnapshot[];
  readonly journal: FoundJournal | undefined;
  /** Last record up to which the journal can be folded from the newest readable snapshot. */
  readonly prefixEnd: number;
  /** Blocks of initialized parameters missing in that state. */
  readonly prefixLacks: readonly LackedBlock[];
  readonly lastKnownSeq: number;
  /** First record known to be lost, also if the journal holds another one in its place. */
  readonly lostFrom: number | undefined;
  /** Counts of the records that the journal holds after a sequence. */
  readonly behind: (afterSeq: number) => Tally;
}

/** The newest snapshot that can be read as a whole; the journal is folded from it. */
export function newestWhole(snapshots: readonly FoundSnapshot[]): FoundSnapshot | undefined {
  return snapshots.find(({ problem }) => problem === undefined);
}

/**
 * States that a shard can go on from, the smallest loss first: the readable prefix of the journal if it
 * extends the newest whole snapshot, then the whole snapshots. States without blocks of initialized
 * parameters are excluded: nobody could read or initialize these blocks any more.
 */
export function choicesOf(facts: ChoiceFacts): RecoveryChoice[] {
  const whole = facts.snapshots.filter(
    ({ problem, lacks }) => problem === undefined && lacks.length === 0,
  );
  const positions = new Set<string>();
  const snapshots: RecoveryChoice[] = [];
  for (const { manifestSeq, generation, seq } of whole) {
    const position = `${generation} ${seq}`;
    // Manifests of different owners may name the same snapshot.
    if (positions.has(position)) continue;
    positions.add(position);
    const lost = lostBehind(facts, generation === facts.generation ? seq : 0);
    snapshots.push({ from: "snapshot", manifestSeq, generation, seq, lost });
  }
  const prefix = prefixOf(facts);
  return prefix === undefined ? snapshots : [prefix, ...snapshots];
}

function prefixOf(facts: ChoiceFacts): RecoveryChoice | undefined {
  const { generation, journal, prefixEnd: seq } = facts;
  if (journal === undefined || journal.problem !== undefined) return undefined;
  if (facts.prefixLacks.length > 0) return undefined;
  const base = newestWhole(facts.snapshots);
  if (base === undefined) {
    // Only the first journal of a shard starts from an empty state.
    if (generation !== 1 || journal.firstSeq !== 1 || seq === 0) return undefined;
    return { from: "prefix", generation, seq, lost: lostBehind(facts, seq) };
  }
  if (base.generation !== generation || seq <= base.seq) return undefined;
  const { manifestSeq } = base;
  return { from: "prefix", manifestSeq, generation, seq, lost: lostBehind(facts, seq) };
}

function lostBehind(facts: ChoiceFacts, seq: number): Lost {
  const { generation, lastKnownSeq: to, lostFrom = Number.POSITIVE_INFINITY } = facts;
  const from = Math.min(seq + 1, lostFrom);
  const { trainers, hostRecords } = facts.behind(seq);
  const records = Math.max(0, to - from + 1);
  const told = trainers.reduce((sum, each) => sum + each.records, hostRecords);
  const unknown = Math.max(0, records - told);
  return { generation, from, to, records, trainers, hostRecords, unknown };
}
