// Proves when a host calls its job gone: at once when another bucket has taken the place of the one that it opened, or
// when a single broker holds nothing of it; in a cluster only after a lease time in which every look found nothing;
// and never while the broker does not answer or holds a part of it. Time is simulated.
import { JetStreamApiError } from "@nats-io/jetstream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JobWatch } from "../../../src/actors/host/watches.ts";
import { bucketStream, JobSubjects, type PserverError } from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const LEASE_MS = 3_000;
const SUBJECTS = new JobSubjects("j");
const RECORDS = bucketStream(SUBJECTS.bucket());
const SNAPSHOTS = SUBJECTS.snapshotStream();

let clock: FakeClock;
/** The streams that the broker holds, with the time when each was made. */
let streams: Map<string, string>;
let answers: boolean;
let cluster: string | undefined;
let gone: PserverError[];
let watch: JobWatch;

beforeEach(() => {
  clock = new FakeClock();
  streams = new Map([
    [RECORDS, "first"],
    [SNAPSHOTS, "first"],
  ]);
  [answers, cluster, gone] = [true, undefined, []];
  const info = async (stream: string): Promise<{ created: string }> => {
    if (!answers) throw new Error("timeout");
    const created = streams.get(stream);
    const missing = { code: 404, err_code: 10059, description: "stream not found" };
    if (created === undefined) throw new JetStreamApiError(missing);
    return { created };
  };
  watch = new JobWatch({
    connection: {
      get info() {
        return (cluster === undefined ? {} : { cluster }) as never;
      },
    },
    manager: { streams: { info } } as never,
    ...{ subjects: SUBJECTS, created: "first", leaseMs: LEASE_MS, clock },
    onGone: (error) => gone.push(error),
  });
  watch.start();
});

afterEach(() => watch.stop());

test("a job that is there is never gone", async () => {
  await clock.advance(20 * LEASE_MS);
  expect(gone).toEqual([]);
});

test("one whose store was emptied is gone, and that is told once", async () => {
  streams.clear();
  watch.reconnected();
  await clock.advance(0);
  expect(gone.map(({ code }) => code)).toEqual(["JOB_DAMAGED"]);
  await clock.advance(20 * LEASE_MS);
  expect(gone).toHaveLength(1);
});

test("one that another has taken the place of is gone, without a reconnect, too", async () => {
  streams.set(RECORDS, "later");
  await clock.advance(2 * LEASE_MS);
  expect(gone.map(({ message }) => message)).toEqual([expect.stringContaining("made at later")]);
});

test("one that has lost only its records is not gone: they can be put back", async () => {
  streams.delete(RECORDS);
  await clock.advance(20 * LEASE_MS);
  expect(gone).toEqual([]);
});

test("a broker that does not answer says nothing", async () => {
  answers = false;
  watch.reconnected();
  await clock.advance(20 * LEASE_MS);
  expect(gone).toEqual([]);
});

test("in a cluster only a lease time without any stream counts", async () => {
  cluster = "c";
  streams.clear();
  watch.reconnected();
  await clock.advance(LEASE_MS - 1);
  // One server has read its streams by now.
  streams.set(RECORDS, "first");
  await clock.advance(LEASE_MS);
  expect(gone).toEqual([]);
  streams.clear();
  await clock.advance(3 * LEASE_MS);
  expect(gone).toHaveLength(1);
});

test("a time without answers is no time without streams", async () => {
  cluster = "c";
  streams.clear();
  watch.reconnected();
  await clock.advance(LEASE_MS / 2);
  answers = false;
  await clock.advance(LEASE_MS);
  answers = true;
  await clock.advance(LEASE_MS / 2);
  expect(gone).toEqual([]);
});
