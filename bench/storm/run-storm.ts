import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { RunRecord } from "./figures.ts";
import { readJournalFacts } from "./journal-facts.ts";
import type { LearnerLog } from "./learner-log.ts";
import type { TimedFault } from "./schedule.ts";
import { JOB, type PlaceOptions, StormPlace } from "./storm-place.ts";

/** A run, with faults or without. */
export interface RunOptions {
  readonly place: PlaceOptions;
  readonly durationMs: number;
  readonly faults: readonly TimedFault[];
  readonly log: (line: string) => void;
  /** Ends a run that hangs. */
  readonly signal: AbortSignal;
}

/**
 * Has learners train for a time while faults befall them, the hosts and the broker. Then waits until every learner has
 * contributed again, ends them in order, and reads the journals.
 * @throws the reason of the signal; an error that names a process which has ended by itself.
 */
export async function runStorm(options: RunOptions): Promise<RunRecord> {
  const { durationMs, faults, signal } = options;
  // Each fault waits for its time, and for its end.
  setMaxListeners(faults.length + 1, signal);
  const place = await StormPlace.open(options.place, signal);
  try {
    const fromMs = Date.now();
    await Promise.all([
      delay(durationMs, undefined, { signal }),
      ...faults.map((fault) => causeFault(place, fault, options)),
    ]);
    const untilMs = Date.now();
    await place.until(() => allContribute(place), signal);
    await place.endLearners();
    if (place.ended.length > 0) throw new Error(place.ended.join("\n"));
    const facts = await readJournalFacts(place.broker.url, JOB);
    return { fromMs, untilMs, timeline: place.timeline, logs: place.logs(), facts };
  } finally {
    await place.close();
  }
}

async function causeFault(
  place: StormPlace,
  fault: TimedFault,
  { log, signal }: RunOptions,
): Promise<void> {
  await delay(fault.atMs, undefined, { signal });
  const seconds = (fault.lastsMs / 1_000).toFixed(1);
  const victim = "learner" in fault ? ` ${place.learners[fault.learner]?.trainer}` : "";
  log(`${(fault.atMs / 1_000).toFixed(1)} s: ${fault.kind}${victim} for ${seconds} s`);
  const lasts = (): Promise<void> => delay(fault.lastsMs, undefined, { signal });
  switch (fault.kind) {
    case "kill":
      await place.killLearner(fault.learner);
      await lasts();
      place.startLearner(fault.learner, fault.newId);
      return;
    case "stop":
      place.stopLearner(fault.learner);
      await lasts();
      place.continueLearner(fault.learner);
      return;
    case "partition":
      place.cutLearner(fault.learner);
      await lasts();
      place.joinLearner(fault.learner);
      return;
    case "kill-host":
      await place.killHost(fault.host);
      await lasts();
      await place.startHost(fault.host);
      return;
    case "kill-broker":
      await place.killBroker();
      await lasts();
      await place.startBroker();
  }
}

/** Whether every learner has contributed since anything was done to it, to the hosts or to the broker. */
function allContribute(place: StormPlace): boolean {
  const logs = new Map(place.logs().map((log) => [log.trainer, log]));
  return place.learners.every(({ number, trainer }) => {
    const touched = place.timeline.filter(
      (event) => !("learner" in event) || event.learner === number,
    );
    const lastMs = Math.max(...touched.map(({ timeMs }) => timeMs));
    return hasContributed(logs.get(trainer), lastMs);
  });
}

function hasContributed(log: LearnerLog | undefined, sinceMs: number): boolean {
  return (log?.lines ?? []).some(
    (line) => line.event === "acknowledged" && line.round !== null && line.timeMs > sinceMs,
  );
}
