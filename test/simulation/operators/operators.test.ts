// Proves by simulation that the commands of operators can stop at every step, come late and run twice at once: pserver
// archive, fork, remove, recover and rewind run as they are, with nats.js, against JetStream in memory; archive writes
// real files. A seed decides which process goes on with its next message or its next operation on a file, which sleeps
// before a write that decides, which message is lost, comes late or is not answered, and which process crashes before or
// after its message, or in the middle of a write; meanwhile hosts join, take shards over, make snapshots and trim, and
// trainers store updates. In the end whatever is incomplete is repeated as the documents advise. The oracles: a job has
// exactly the state of its cut and all updates since, or names what it has given up; its entries name exactly the blocks
// that exist; verify finds it sound; nobody removes what another has made. Hosts trim nothing that the archiver which
// runs has not copied, as long as they are to wait for it; an archive has what hosts were told that it has, and names what
// it lacks; archive and broker together give the states that there were, and refuse all other points. A failure prints
// its seed, as in ../simulation.test.ts. And the oracles are proved in turn: they find each of the defects of
// planted-bugs.ts.
import { expect, test } from "vitest";
import { ensureError } from "../../../src/protocol/errors.ts";
import { Random } from "../random.ts";
import { RUNS_ONE_SEED, scheduleCount, scheduleTimeoutMs, seedsOf } from "../seeds.ts";
import { ArchiveStory } from "./archive-story.ts";
import { ForkStory, type Report, type Variant } from "./fork-story.ts";
import { PLANTED_BUGS, type StoryName } from "./planted-bugs.ts";
import { withSimulatedTime } from "./processes.ts";
import { RecoverStory } from "./recover-story.ts";
import { RewindStory } from "./rewind-story.ts";

const STORIES = {
  archive: ArchiveStory,
  fork: ForkStory,
  recover: RecoverStory,
  rewind: RewindStory,
} as const;

const SCHEDULES = scheduleCount(30);

/** Schedules within which every planted defect must show. */
const DEFECT_SCHEDULES = 150;

/** A schedule of commands takes longer than one of trainers. */
const TIMEOUT_MS = 10 * scheduleTimeoutMs(Math.max(SCHEDULES, DEFECT_SCHEDULES));

function runStory(story: StoryName, seed: number, variant?: Variant): Promise<Report> {
  return withSimulatedTime(seed, () => new STORIES[story](new Random(seed), variant).run());
}

test.each(["archive", "fork", "recover", "rewind"] as const)(
  "no schedule of %s breaks a promise",
  { timeout: TIMEOUT_MS },
  async (story) => {
    const sum = { updates: 0, completed: 0, failed: 0, crashed: 0 };
    for (const seed of seedsOf(SCHEDULES)) {
      const { updates, completed, failed, crashed } = await runStory(story, seed).catch((cause) => {
        throw new Error(`SIMULATION_SEED=${seed}: ${ensureError(cause).message}`, { cause });
      });
      sum.updates += updates;
      sum.completed += completed;
      sum.failed += failed;
      sum.crashed += crashed;
    }
    // Schedules in which nothing goes wrong, or nothing goes well, would prove nothing.
    if (RUNS_ONE_SEED) return;
    expect(sum.updates).toBeGreaterThan(SCHEDULES);
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(SCHEDULES / 10);
  },
);

test("a seed decides its schedule", async () => {
  expect(await runStory("fork", 7)).toEqual(await runStory("fork", 7));
});

test.each(Object.entries(PLANTED_BUGS))(
  "%s is found",
  { timeout: TIMEOUT_MS },
  async (_what, { story, variant, found }) => {
    let last = "nothing";
    for (let seed = 1; seed <= DEFECT_SCHEDULES && !found.test(last); seed++) {
      await runStory(story, seed, variant).catch((error) => {
        last = ensureError(error).message;
      });
    }
    expect(last).toMatch(found);
  },
);
