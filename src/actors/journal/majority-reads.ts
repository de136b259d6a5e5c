import { setTimeout as delay } from "node:timers/promises";
import {
  type ErrorCode,
  ensureError,
  type HostRecord,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { Journal, JournalInfo } from "./journal.ts";

// The leader of a stream answers questions by itself. One that the network has separated from the other
// replicas goes on for up to some seconds after they have elected another, and does not know what that one
// has acknowledged. A record is acknowledged only when a majority has stored it, so an answer that covers a
// record appended just before covers everything acknowledged before. A journal that is not replicated has no
// second leader, and its broker's answers are taken as they are.

/** Changes nothing under any version of the rules: no session has a number below 1. */
const BARRIER: HostRecord = { verb: "floor", session: 0 };

/** Questions until a former leader must have heard of its successor, and the pause between two. */
const QUESTIONS_MAX = 100;
const PAUSE_MS = 100;

/**
 * State of the stream, with every record that was acknowledged before the call; undefined if there is no
 * stream. A replicated journal gets a record that changes nothing. If it can take none, because it is full or
 * its broker cannot write, the leader's answer is taken as it is.
 * @throws JETSTREAM_UNAVAILABLE if no leader with a majority answers, and the errors of {@link Journal.info}.
 */
export async function majorityInfo(
  journal: Pick<Journal, "shard" | "isReplicated" | "info" | "append">,
  generation: number,
): Promise<JournalInfo | undefined> {
  const first = await journal.info(generation);
  if (first === undefined || !journal.isReplicated) return first;
  const barrier = await appendBarrier(journal);
  // Nothing is added to a generation that another one has replaced.
  if (barrier?.generation !== generation) return first;
  const info = await askFormerLeaders(
    () => journal.info(generation),
    (found) => found === undefined || found.lastSeq >= barrier.seq,
  );
  if (info === undefined || info.lastSeq >= barrier.seq) return info;
  const { shard } = journal;
  throw new PserverError(
    "JETSTREAM_UNAVAILABLE",
    `journal of shard ${shard}: its leader knows record ${info.lastSeq} as the last one; ` +
      `expected at least ${barrier.seq}, which the broker has acknowledged`,
    { shard, expected: barrier.seq, received: info.lastSeq },
  );
}

/**
 * Last sequence of a position's generation, at least if it is below the position: then a record is
 * appended to make sure. Undefined without a stream, or if the journal takes no record.
 */
export async function majorityLastSeq(
  journal: Pick<Journal, "isReplicated" | "lastSeq" | "append">,
  { generation, seq }: Position,
): Promise<number | undefined> {
  const lastSeq = await journal.lastSeq(generation);
  if (lastSeq === undefined || lastSeq >= seq || !journal.isReplicated) return lastSeq;
  const barrier = await appendBarrier(journal);
  return barrier?.generation === generation ? barrier.seq - 1 : undefined;
}

/** One record that the stream is known to count; undefined if it cannot be read. */
export async function majorityRecord(
  journal: Pick<Journal, "isReplicated" | "record">,
  generation: number,
  seq: number,
): Promise<JournalRecord | undefined> {
  const read = (): Promise<JournalRecord | undefined> => journal.record(generation, seq);
  if (!journal.isReplicated) return await read();
  return await askFormerLeaders(read, (record) => record !== undefined);
}

/** Refusals of a leader that can store nothing: room is made by the owner that takes over, or by an operator. */
const STORES_NOTHING: readonly ErrorCode[] = ["JOURNAL_FULL", "JOURNAL_FAULT"];

/** Where the record is that changes nothing; undefined if the journal takes no records. */
async function appendBarrier(journal: Pick<Journal, "append">): Promise<Position | undefined> {
  try {
    return await journal.append(BARRIER);
  } catch (error) {
    if (STORES_NOTHING.includes(ensureError(error).code)) return undefined;
    throw error;
  }
}

/** Asks until an answer is as expected, for as long as a former leader may be the one that answers. */
async function askFormerLeaders<Answer>(
  ask: () => Promise<Answer>,
  isExpected: (answer: Answer) => boolean,
): Promise<Answer> {
  for (let questions = 1; ; questions++) {
    const answer = await ask();
    if (isExpected(answer) || questions === QUESTIONS_MAX) return answer;
    await delay(PAUSE_MS);
  }
}
