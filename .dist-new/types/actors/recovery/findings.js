/** Returns the newest snapshot that can be read as a whole; the journal is folded from it. */
export function newestWhole(snapshots) {
    return snapshots.find(({ problem }) => problem === undefined);
}
/**
 * Returns the states that a shard can go on from, the smallest loss first: the rest of the journal without records
 * that cannot be folded, the readable prefix if it extends the newest whole snapshot, then the whole snapshots, and
 * among them the state of the archive. States without blocks of initialized parameters are excluded: nobody could
 * read or initialize these blocks any more.
 */
export function choicesOf(facts) {
    const whole = facts.snapshots.filter(({ problem, lacks }) => problem === undefined && lacks.length === 0);
    const positions = new Set();
    const snapshots = [];
    for (const { manifestSeq, generation, seq } of whole) {
        const position = `${generation} ${seq}`;
        // Manifests of different owners may name the same snapshot.
        if (positions.has(position))
            continue;
        positions.add(position);
        const lost = lostBehind(facts, generation === facts.generation ? seq : 0);
        snapshots.push({ from: "snapshot", manifestSeq, generation, seq, lost });
    }
    const parts = [restOf(facts), prefixOf(facts)].filter((choice) => choice !== undefined);
    return withArchive(facts, [...parts, ...snapshots]);
}
/** Returns the choice of the journal without the records that are put aside. */
function restOf(facts) {
    const { rest, generation } = facts;
    const [first] = rest?.without ?? [];
    if (rest === undefined || first === undefined)
        return undefined;
    if (rest.problem !== undefined || rest.lacks.length > 0)
        return undefined;
    const { seq, without } = rest;
    const base = newestWhole(facts.snapshots);
    const behind = lostBehind(facts, seq);
    const trainers = new Map(behind.trainers.map(({ trainer, records }) => [trainer, records]));
    let { hostRecords } = behind;
    for (const { trainer } of without) {
        if (trainer === undefined)
            hostRecords += 1;
        else
            trainers.set(trainer, (trainers.get(trainer) ?? 0) + 1);
    }
    const lost = {
        ...behind,
        from: first.seq,
        to: behind.records > 0 ? behind.to : Math.max(...without.map((each) => each.seq)),
        records: without.length + behind.records,
        trainers: [...trainers].map(([trainer, records]) => ({ trainer, records })),
        hostRecords,
    };
    const seqs = without.map((each) => each.seq);
    const manifest = base === undefined ? {} : { manifestSeq: base.manifestSeq };
    return { from: "rest", ...manifest, generation, seq, without: seqs, lost };
}
/** Puts the state of the archive before the first one that loses more. */
function withArchive(facts, others) {
    const { archive } = facts;
    const isUsable = archive?.problem === undefined && archive?.lacks.length === 0;
    if (archive === undefined || !isUsable)
        return [...others];
    const { generation, seq } = archive;
    const lost = generation === facts.generation ? lostWithArchive(facts, archive) : lostBehind(facts, 0);
    const losesMore = (other) => other.generation < generation ||
        (other.generation === generation && other.lost.records > lost.records);
    const place = others.findIndex(losesMore);
    const end = place === -1 ? others.length : place;
    const choice = { from: "archive", generation, seq, lost };
    return [...others.slice(0, end), choice, ...others.slice(end)];
}
function prefixOf(facts) {
    const { generation, journal, prefixEnd: seq } = facts;
    if (journal === undefined || journal.problem !== undefined)
        return undefined;
    if (facts.prefixLacks.length > 0)
        return undefined;
    const base = newestWhole(facts.snapshots);
    if (base === undefined) {
        // Only the first journal of a shard starts from an empty state.
        if (generation !== 1 || journal.firstSeq !== 1 || seq === 0)
            return undefined;
        return { from: "prefix", generation, seq, lost: lostBehind(facts, seq) };
    }
    if (base.generation !== generation || seq <= base.seq)
        return undefined;
    const { manifestSeq } = base;
    return { from: "prefix", manifestSeq, generation, seq, lost: lostBehind(facts, seq) };
}
function lostBehind(facts, seq) {
    const { lastKnownSeq: to, lostFrom = Number.POSITIVE_INFINITY } = facts;
    return lostBetween(facts, { from: Math.min(seq + 1, lostFrom), to }, seq);
}
/**
 * Returns what the state of the archive loses. A lost record that the archive holds is not lost with it; the records
 * that the journal holds in the place of such records are.
 */
function lostWithArchive(facts, { seq, archivedSeq, replacedFrom }) {
    const { lastKnownSeq, lostFrom = 0, journal } = facts;
    if (replacedFrom !== undefined) {
        const to = lastKnownSeq > seq ? lastKnownSeq : (journal?.lastSeq ?? 0);
        return lostBetween(facts, { from: replacedFrom, to }, replacedFrom - 1);
    }
    return lostBehind(archivedSeq >= lostFrom ? { ...facts, lostFrom: undefined } : facts, seq);
}
/** Returns the loss of a range of records, of which the journal may hold those after `seq`. */
function lostBetween(facts, { from, to }, seq) {
    const { generation } = facts;
    const { trainers, hostRecords } = facts.behind(seq);
    const records = Math.max(0, to - from + 1);
    const counted = trainers.reduce((sum, each) => sum + each.records, hostRecords);
    const unknown = Math.max(0, records - counted);
    return { generation, from, to, records, trainers, hostRecords, unknown };
}
//# sourceMappingURL=findings.js.map