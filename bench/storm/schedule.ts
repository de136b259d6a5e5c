import type { Random } from "../../test/simulation/random.ts";

/** What befalls a learner, with how long it lasts, or a process of the server, which is started again after a while. */
type Fault =
  | { readonly kind: "kill"; readonly learner: number; readonly newId: boolean }
  | { readonly kind: "stop" | "partition"; readonly learner: number }
  | { readonly kind: "kill-host"; readonly host: number }
  | { readonly kind: "kill-broker" };

/** A fault with its time from the beginning of the storm, in milliseconds. */
export type TimedFault = Fault & { readonly atMs: number; readonly lastsMs: number };

/** The kinds of faults. */
export const FAULT_KINDS = ["kill", "stop", "partition", "kill-host", "kill-broker"] as const;

/** How large a storm is. */
export interface StormSize {
  readonly durationMs: number;
  readonly learners: number;
  readonly hosts: number;
  /** Faults of learners. */
  readonly learnerFaults: number;
  readonly hostKills: number;
  readonly brokerKills: number;
}

/** How long faults last: some end before a lease has run out, and some long after it. */
const LASTS_MS = [1_000, 12_000] as const;
/** How long a supervisor takes to start a process again. */
const RESTART_MS = [500, 2_500] as const;
/** The first and last part of a storm have no faults, so that each can be seen to be over. */
const CALM_SHARE = 0.08;

/**
 * Plans a storm: faults of each kind at random times, no learner having two at one time, and never all hosts being down.
 * Learners' faults come in equal parts, and every other kill is followed by a start under a new id.
 */
export function planStorm(size: StormSize, random: Random): TimedFault[] {
  const { learnerFaults, hostKills, brokerKills } = size;
  const kinds = ["kill", "stop", "partition"] as const;
  const planned: TimedFault[] = [];
  for (let i = 0; i < learnerFaults; i++) {
    const kind = kinds[i % kinds.length] ?? "kill";
    const [least, most] = kind === "kill" ? RESTART_MS : LASTS_MS;
    const lastsMs = between(random, least, most);
    const place = freePlace(size, planned, lastsMs, random);
    const newId = i % (2 * kinds.length) === 0;
    planned.push(
      kind === "kill" ? { kind, newId, ...place, lastsMs } : { kind, ...place, lastsMs },
    );
  }
  for (const [i, atMs] of spreadOut(size, hostKills, random).entries()) {
    const lastsMs = between(random, ...RESTART_MS);
    planned.push({ kind: "kill-host", host: i % size.hosts, atMs, lastsMs });
  }
  for (const atMs of spreadOut(size, brokerKills, random)) {
    planned.push({ kind: "kill-broker", atMs, lastsMs: between(random, ...RESTART_MS) });
  }
  return planned.sort((a, b) => a.atMs - b.atMs);
}

/** Times with about the same distance. */
function spreadOut({ durationMs }: StormSize, count: number, random: Random): number[] {
  const calmMs = CALM_SHARE * durationMs;
  const eachMs = (durationMs - 2 * calmMs) / count;
  return Array.from({ length: count }, (_, i) => calmMs + i * eachMs + random.below(eachMs / 2));
}

/** A learner, and a time at which it has no other fault. */
function freePlace(
  { durationMs, learners }: StormSize,
  planned: readonly TimedFault[],
  lastsMs: number,
  random: Random,
): { learner: number; atMs: number } {
  const calmMs = CALM_SHARE * durationMs;
  const latestMs = Math.max(1, durationMs - 2 * calmMs - lastsMs);
  for (;;) {
    const learner = random.below(learners);
    const atMs = calmMs + random.below(latestMs);
    const overlaps = planned.some(
      (fault) =>
        "learner" in fault &&
        fault.learner === learner &&
        atMs < fault.atMs + fault.lastsMs + calmMs &&
        fault.atMs < atMs + lastsMs + calmMs,
    );
    if (!overlaps) return { learner, atMs };
  }
}

function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least);
}
