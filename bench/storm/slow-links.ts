import { tableText } from "../table.ts";
import { checkRun, type Finding } from "./check.ts";
import { type JournalFacts, readJournalFacts } from "./journal-facts.ts";
import type { LearnerLog } from "./learner-log.ts";
import { hasEnded, JOB, type LearnerWork, StormPlace } from "./storm-place.ts";

/** Encodings of contributions that are compared, with what an element of one may take in all. */
export const ENCODINGS = [
  { encoding: "int8", bytesMost: 1.06 },
  { encoding: "e3m0", bytesMost: 0.56 },
] as const;

/** Links of the learners, in Mbit/s. The one that gives the job its values has none of them. */
const MEGABITS = [1, 3, 10] as const;
const BYTES_PER_MEGABIT = 125_000;

const SHAPE = [512, 256] as const;
const ELEMENTS = SHAPE[0] * SHAPE[1];
const ROUNDS = 3;

/** What a learner on a slow link has moved and done. */
export interface SlowLinkFigures {
  readonly encoding: string;
  readonly megabits: number;
  /** Contributions that counted. */
  readonly contributions: number;
  /** All bytes that it has sent, for each element that it has contributed. */
  readonly sentEach: number;
  /** All bytes that have come, for each element that it has received. */
  readonly receivedEach: number;
  /** Inner steps that it made from sending a contribution to adopting the result: the least in any round. */
  readonly stepsMeanwhile: number;
  /** Times that it was no member, although it was alive. */
  readonly outs: number;
}

/** Trains over links of 1, 3 and 10 Mbit/s for some rounds, in each of which all learners must take part. */
export async function runSlowLinks(
  encoding: (typeof ENCODINGS)[number]["encoding"],
  signal: AbortSignal,
): Promise<{ figures: SlowLinkFigures[]; findings: Finding[] }> {
  const learners = 1 + MEGABITS.length;
  const work: LearnerWork = {
    ...{ fragments: 1, tensors: 1, shape: SHAPE, rounds: ROUNDS },
    ...{ syncEvery: 10, stepTime: 0.05, encoding },
  };
  const links = [Number.POSITIVE_INFINITY, ...MEGABITS.map((each) => each * BYTES_PER_MEGABIT)];
  const hostFlags = ["--quorum", String(learners)];
  const place = await StormPlace.open(
    { learners, hosts: 1, work, hostFlags, seed: 1, links },
    signal,
  );
  try {
    await place.until(() => place.learners.every(({ child }) => hasEnded(child)), signal);
    const facts = await readJournalFacts(place.broker.url, JOB);
    const logs = place.logs();
    const figures = MEGABITS.map((megabits, i) => {
      const { link, trainer } = place.learners[i + 1] ?? missing();
      const log = logs.find((each) => each.trainer === trainer) ?? missing();
      const done = measureLearner(log, facts);
      const { contributions } = done;
      return {
        ...{ encoding, megabits, ...done },
        sentEach: link.sentBytes / (contributions * ELEMENTS),
        // It has received the values that it began with, too.
        receivedEach: link.receivedBytes / ((1 + contributions) * ELEMENTS),
      };
    });
    return { figures, findings: checkRun(logs, facts) };
  } finally {
    await place.close();
  }
}

/** What the log of a learner and the journal say. */
function measureLearner(
  { trainer, lines }: LearnerLog,
  { members, contributions }: JournalFacts,
): Pick<SlowLinkFigures, "contributions" | "stepsMeanwhile" | "outs"> {
  const begun = new Map<number, number>();
  const meanwhile: number[] = [];
  let lastMs = 0;
  for (const line of lines) {
    if (line.event === "begun" && !begun.has(line.base + 1)) begun.set(line.base + 1, line.at);
    if (line.event !== "adopted") continue;
    lastMs = line.timeMs;
    const sentAt = begun.get(line.version);
    if (sentAt !== undefined) meanwhile.push(line.at - sentAt);
  }
  const firstMs = members.find(({ trainers }) => trainers.includes(trainer))?.timeMs ?? lastMs;
  const outs = members.filter(
    ({ timeMs, trainers }) => timeMs > firstMs && timeMs < lastMs && !trainers.includes(trainer),
  );
  const counted = contributions.filter((each) => each.trainer === trainer && each.round);
  return {
    contributions: counted.length,
    stepsMeanwhile: Math.min(...meanwhile),
    outs: outs.length,
  };
}

function missing(): never {
  throw new Error("a learner is missing");
}

/** Writes the figures as a table, and which aims were met. */
export function reportSlowLinks(found: readonly SlowLinkFigures[]): string {
  const titles = ["link", "sent an element", "aim", "received", "steps meanwhile", "outs", ""];
  const rows = found.map(({ megabits, encoding, sentEach, outs, ...figures }) => {
    const most = ENCODINGS.find((each) => each.encoding === encoding)?.bytesMost ?? 0;
    return [
      ...[`${megabits} Mbit/s, ${encoding}`, `${sentEach.toFixed(3)} B`, `≤ ${most} B`],
      ...[`${figures.receivedEach.toFixed(3)} B`, `≥ ${figures.stepsMeanwhile}`, `${outs}`],
      sentEach <= most && outs === 0 ? "met" : "missed",
    ];
  });
  return tableText([titles, ...rows]);
}
