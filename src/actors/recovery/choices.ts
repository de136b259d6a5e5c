import type {
  FoundJournal,
  FoundSnapshot,
  LackedBlock,
  Lost,
  PrefixChoice,
  RecoveryChoice,
  SnapshotChoice,
  Tally,
} from "./findings.ts";

/** What the choices of a shard follow from. */
export interface ChoiceFacts {
  readonly generation: number;
  /** Newest first. */
  readonly snapshots: readonly FoundSnapshot[];
  readonly journal: FoundJournal | undefined;
  /** The last record up to which the journal can be folded on the newest whole snapshot. */
  readonly prefixEnd: number;
  /** Blocks of initialized parameters that are missing there. */
  readonly prefixLacks: readonly LackedBlock[];
  readonly lastKnownSeq: number;
  /** The first record known to be gone although the journal may hold others in its place. */
  readonly lostFrom: number | undefined;
  /** Whose records the journal gives behind a sequence. */
  readonly behind: (afterSeq: number) => Tally;
}

/** The newest snapshot that is whole; it is what the journal is folded on. */
export function newestWhole(snapshots: readonly FoundSnapshot[]): FoundSnapshot | undefined {
  return snapshots.find(({ problem }) => problem === undefined);
}

/**
 * What a shard can go on from, that which loses least first: the readable prefix if it reaches beyond
 * the newest whole snapshot, then the whole snapshots. A state that lacks blocks of initialized parameters
 * is none: nobody could read or initialize them any more.
 */
export function choicesOf(facts: ChoiceFacts): RecoveryChoice[] {
  const whole = facts.snapshots.filter(
    ({ problem, lacks }) => problem === undefined && lacks.length === 0,
  );
  const positions = new Set<string>();
  const snapshots: SnapshotChoice[] = [];
  for (const { manifestSeq, generation, seq } of whole) {
    const position = `${generation} ${seq}`;
    // Manifests of several owners name the same snapshot.
    if (positions.has(position)) continue;
    positions.add(position);
    const lost = lostBehind(facts, generation === facts.generation ? seq : 0);
    snapshots.push({ from: "snapshot", manifestSeq, generation, seq, lost });
  }
  const prefix = prefixOf(facts);
  return prefix === undefined ? snapshots : [prefix, ...snapshots];
}

function prefixOf(facts: ChoiceFacts): PrefixChoice | undefined {
  const { generation, journal, prefixEnd: seq } = facts;
  if (journal === undefined || journal.problem !== undefined) return undefined;
  if (facts.prefixLacks.length > 0) return undefined;
  const base = newestWhole(facts.snapshots);
  if (base === undefined) {
    // Only the first journal of a shard begins with an empty state.
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
