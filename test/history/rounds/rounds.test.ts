// Proves that what reads a history understands rounds of fragments: the log says what each contribution was and what a
// close has merged, also from the tape; find and show tell of single ones; blame names the contributions that moved an
// element; verify finds a snapshot whose accounts are wrong; and what-if leaves a trainer's contributions out, with the
// rounds still closing. All of it holds with merges that need every contribution.
import { beforeEach, describe, expect, test } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { foldDescribed, type UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import { decodeTape } from "../../../src/actors/journal/tape/tape-decoder.ts";
import {
  blameElement,
  type ElementChange,
  locateElement,
  parseElement,
} from "../../../src/history/blame.ts";
import { examineRecord } from "../../../src/history/examine-record.ts";
import { detectorOf, type FindingKind } from "../../../src/history/update-findings.ts";
import { isSound, verifyShard } from "../../../src/history/verify.ts";
import { foldWhatIf } from "../../../src/history/what-if.ts";
import { both, FragmentJob, MEMBERS } from "../../actors/fold/fragments/fragment-job.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import { FoldedHistory } from "../folded-history.ts";

const { signal } = new AbortController();

let job: FragmentJob;
let history: FoldedHistory;

/** Two rounds: the first of alice and bob, the second of alice in parts and bob, who came late before. */
beforeEach(() => {
  job = new FragmentJob();
  job.contribute("alice", 2, 2, { steps: 5, tokens: 50 });
  job.contribute("bob", 4);
  job.close(2);
  job.contribute("bob", 100, 100, { id: 2 });
  const [u, w] = both(1, 1);
  job.send("alice", w === undefined ? [] : [w], { id: 3, base: 1, part: 1, parts: 2 });
  job.send("alice", u === undefined ? [] : [u], { id: 3, base: 1, part: 0, parts: 2 });
  job.contribute("bob", 3, 3, { id: 3, base: 1 });
  job.close(2);
  history = new FoldedHistory(job.journal.records, job.shard.synchronization);
});

/** The events of contributions and closes. */
function described(): UpdateEvent[] {
  const shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  return job.journal.records.flatMap((record) => {
    const place = { shard: SHARD, generation: 1 };
    const { events } = foldDescribed(shard, { ...record, timeMs: 0 }, place);
    return events.filter(({ verb }) => verb === "contribute" || verb === "close");
  });
}

test("every contribution and close has a line", () => {
  const events = described();
  const seqs = events.map(({ seq }) => seq);
  const first = { fragment: "f", base: 0, steps: 5, tokens: 50, round: 1 };
  const usual = { fragment: "f", steps: 10, tokens: 1000 };
  expect(
    events.map(({ trainer, verb, outcome, note }) => [trainer, verb, outcome.kind, note]),
  ).toEqual([
    ["alice", "contribute", "applied", first],
    ["bob", "contribute", "applied", { ...usual, base: 0, round: 1 }],
    [
      undefined,
      "close",
      "applied",
      { fragment: "f", round: 1, contributions: 2, merged: `${seqs[0]} ${seqs[1]}` },
    ],
    ["bob", "contribute", "rejected", { ...usual, base: 0 }],
    ["alice", "contribute", "applied", { ...usual, base: 1, part: 2, parts: 2 }],
    ["alice", "contribute", "applied", { ...usual, base: 1, part: 1, parts: 2, round: 2 }],
    ["bob", "contribute", "applied", { ...usual, base: 1, round: 2 }],
    [
      undefined,
      "close",
      "applied",
      { fragment: "f", round: 2, contributions: 2, merged: `${seqs[5]} ${seqs[6]}` },
    ],
  ]);
});

test("a close that closes nothing says so", () => {
  job.close(7);
  expect(described().at(-1)?.note).toEqual({ fragment: "f", round: 3, contributions: 0 });
});

test("the tape has the same lines", async () => {
  history.own.writeTape(1, history.own.lastSeq);
  const lines: UpdateEvent[] = [];
  for await (const { data } of history.own.readTape({ kind: "message", seq: 1 })) {
    lines.push(...decodeTape(data, SHARD).events);
  }
  const notes = lines
    .filter(({ verb }) => verb === "contribute" || verb === "close")
    .map(({ note }) => note);
  expect(notes).toEqual(described().map(({ note }) => note));
});

test("blame names the round that moved an element, and what each contribution added", async () => {
  const until = history.cut(history.own.lastSeq);
  const place = await locateElement(history, until, parseElement("w[1]"), signal);
  const changes: ElementChange[] = [];
  const onChange = (change: ElementChange): void => void changes.push(change);
  const { steps, sum } = await blameElement(history, place, { until, signal, onChange });
  const rounds = changes.filter(({ kind }) => kind === "round");
  expect(rounds.map(({ step, change }) => [step?.step, change])).toEqual([
    [1, -3],
    [2, -2],
  ]);
  expect(rounds[0]?.step?.shares).toEqual([
    { trainer: "alice", gradient: 2 },
    { trainer: "bob", gradient: 1 },
  ]);
  expect([...steps.keys()]).toEqual([1, 2]);
  expect(sum).toBe(-5);
});

describe("find", () => {
  const found = (kind: FindingKind): (string | number | undefined)[][] => {
    const detect = detectorOf(kind, { deviations: 3, behind: 0 });
    return described().flatMap((event) => {
      const finding = detect(event);
      if (finding === undefined) return [];
      const why = finding.kind === "rejected" ? finding.reason : finding.kind;
      return [[finding.event.trainer, finding.event.verb, why]];
    });
  };

  test("names the contributions that were rejected, and why", () => {
    expect(found("rejected")).toEqual([
      ["bob", "contribute", expect.stringContaining("LATE: base: expected a version of fragment")],
    ]);
  });

  test("names a contribution that was repeated", () => {
    const last = job.journal.records.at(-2);
    if (last === undefined) throw new Error("no record");
    job.journal.append(last.subject, last.payload);
    expect(found("repeat")).toEqual([["bob", "contribute", "repeat"]]);
  });
});

describe("show", () => {
  const examined = async (verb: string, at: number) => {
    const seq = described().filter((event) => event.verb === verb)[at]?.seq ?? 0;
    return await examineRecord(history, { shard: SHARD, position: { generation: 1, seq } }, signal);
  };

  test("says of a contribution what it was, and in which round it counts", async () => {
    const { events, blocks } = await examined("contribute", 0);
    expect(events).toMatchObject([
      { trainer: "alice", verb: "contribute", outcome: { kind: "applied" }, note: { round: 1 } },
    ]);
    // Values change with the close of the round.
    expect(blocks).toEqual([]);
  });

  test("says of a close what it has merged", async () => {
    const { events } = await examined("close", 1);
    expect(events[0]?.note).toMatchObject({ fragment: "f", round: 2, contributions: 2 });
  });
});

describe("verify", () => {
  test("passes snapshots in the middle of rounds, and of contributions", async () => {
    for (let seq = 1; seq < history.own.lastSeq; seq++) history.own.snapshot(seq);
    const { verification } = await verifyShard(history.own, { subjects: SUBJECTS, signal });
    expect(isSound(verification)).toBe(true);
  });

  test("finds an account that does not add up", async () => {
    history.own.snapshot(history.own.lastSeq, (shard) => {
      const state = shard.saveState();
      const [[trainer, [contributions = 0, ...more] = [], ...fates] = [""]] =
        state.fragments?.ledger ?? [];
      const ledger = [[trainer, [contributions + 1, ...more], ...fates]];
      const fragments = { ...state.fragments, ledger };
      Object.defineProperty(shard, "saveState", { value: () => ({ ...state, fragments }) });
    });
    const { verification } = await verifyShard(history.own, { subjects: SUBJECTS, signal });
    expect(isSound(verification)).toBe(false);
  });
});

describe("what-if", () => {
  const fold = async (without: { trainers?: string[]; seqs?: number[] }): Promise<Shard> => {
    const records = (without.seqs ?? []).map((seq) => ({ generation: 1, seq, shard: SHARD }));
    const changes = { withoutTrainers: without.trainers ?? [], withoutRecords: records };
    const to = { generation: 1, seq: history.own.lastSeq };
    return (await foldWhatIf(history.own, to, { subjects: SUBJECTS, signal, changes })).shard;
  };
  const firstOf = (shard: Shard): number => {
    return new Float32Array(Uint8Array.from(shard.block("w", 0)?.values() ?? []).buffer)[0] ?? 0;
  };

  test("with nothing changed is the real state", async () => {
    expect((await fold({})).digest()).toBe(history.own.folded(history.own.lastSeq).digest());
  });

  test("leaves a trainer out of rounds, which close all the same", async () => {
    const shard = await fold({ trainers: ["bob"] });
    expect([shard.fragmentVersion("f"), firstOf(shard)]).toEqual([2, -2 - 1]);
  });

  test("closes rounds that nobody is left in, so that later ones have their versions", async () => {
    const seqs = described()
      .slice(0, 2)
      .map(({ seq }) => seq);
    const shard = await fold({ seqs });
    expect([shard.fragmentVersion("f"), firstOf(shard)]).toEqual([2, -2]);
  });
});

describe("with a merge that needs every contribution", () => {
  beforeEach(() => {
    job = new FragmentJob({ merge: "median", late: "rebase", sample: 3 });
    for (const [i, trainer] of MEMBERS.entries()) job.contribute(trainer, 10 ** i);
    job.close(3);
    for (const [i, trainer] of MEMBERS.entries()) {
      const said = { id: 2, base: 1, form: "parameters" } as const;
      job.contribute(trainer, -10 - i, -10 - i, said);
    }
    job.close(3);
    history = new FoldedHistory(job.journal.records, job.shard.synchronization);
  });

  test("verify compares snapshots in the middle of rounds", async () => {
    for (let seq = 1; seq < history.own.lastSeq; seq++) history.own.snapshot(seq);
    const { verification } = await verifyShard(history.own, { subjects: SUBJECTS, signal });
    expect(isSound(verification)).toBe(true);
  });

  test("blame names the round, and what each contribution would have added to a mean", async () => {
    const until = history.cut(history.own.lastSeq);
    const place = await locateElement(history, until, parseElement("w[1]"), signal);
    const changes: ElementChange[] = [];
    const onChange = (change: ElementChange): void => void changes.push(change);
    await blameElement(history, place, { until, signal, onChange });
    const rounds = changes.filter(({ kind }) => kind === "round");
    expect(rounds.map(({ step, change }) => [step?.step, change])).toEqual([
      [1, -10],
      [2, -1],
    ]);
    const shares = rounds[0]?.step?.shares.map(({ gradient }) => Number(gradient)) ?? [];
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(111 / 3, 4);
  });

  test("what-if merges those that are left", async () => {
    const changes = { withoutTrainers: ["carol"], withoutRecords: [] };
    const to = { generation: 1, seq: history.own.lastSeq };
    const { shard } = await foldWhatIf(history.own, to, { subjects: SUBJECTS, signal, changes });
    const [value] = new Float32Array(Uint8Array.from(shard.block("w", 0)?.values() ?? []).buffer);
    // The mean of two, and then of what they sent for values that they really had.
    expect([shard.fragmentVersion("f"), value]).toEqual([2, -10.5]);
  });
});
