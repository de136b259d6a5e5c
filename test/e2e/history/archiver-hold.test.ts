// Proves what hosts keep for a registered archiver on a real broker, with registrations that copy nothing:
// no record goes while the journal is below twice what hosts retain; above, they trim all the same; and
// once the registration has not been renewed for its grace time they trim to what they retain, and remove it; and that
// hosts, `status` and `doctor` say that an archiver has stopped, or that its archive will have a gap.
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStoredJob } from "../../../src/actors/job/open-job.ts";
import { ArchiverRegistration } from "../../../src/history/archive/archiver-registration.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { HANG_MS } from "../../support/limits.ts";
import { control, snapshotAll } from "../host/control.ts";
import { Archive } from "../host/journal-fold.ts";
import {
  type ArchivedJob,
  archivedJobOfEachTest,
  RETAIN_BYTES,
  SNAPSHOT_BYTES,
} from "./archived-job.ts";

const NOTHING = { generation: 0, seq: 0 };
const each = archivedJobOfEachTest();
let archived: ArchivedJob;
let broker: Archive;
let connection: NatsConnection;

beforeEach(async () => {
  archived = await each.start({ shards: 1 });
  broker = await Archive.open(archived.job.broker.url, archived.job.job);
  const inboxPrefix = new JobSubjects(archived.job.job).hostInbox("archiver");
  connection = await connect({ servers: archived.job.broker.url, inboxPrefix });
});

afterEach(async () => {
  await broker.close();
  await connection.close();
});

/** Registers an archiver that has copied nothing. */
async function register(graceMs: number): Promise<ArchiverRegistration> {
  const { bucket } = await openStoredJob(connection, archived.job.job);
  const registration = new ArchiverRegistration({
    ...{ bucket, archive: "an-archive", directory: "there", graceMs },
    archived: () => [{ record: NOTHING, snapshot: NOTHING }],
    completeMs: () => undefined,
    onFailure: (error) => {
      throw error;
    },
  });
  await registration.start();
  return registration;
}

/** Trains until `holds` of the journal. */
async function trainUntil(
  holds: (journal: { first: number; bytes: number }) => boolean,
): Promise<void> {
  for (const deadline = performance.now() + HANG_MS; ; ) {
    await archived.train(1);
    await snapshotAll(archived.job);
    const journal = await broker.journal(0);
    if (holds(journal)) return;
    if (performance.now() > deadline) throw new Error(JSON.stringify(journal));
  }
}

test("hosts keep what an archiver has not copied, and give it up at twice what they retain", async () => {
  const registration = await register(HANG_MS);
  try {
    let keptBytes = 0;
    await trainUntil(({ first, bytes }) => {
      if (first === 1) keptBytes = bytes;
      return first > 1;
    });
    // One more round of training, and it was more than the bound.
    expect(keptBytes).toBeGreaterThan(2 * RETAIN_BYTES - SNAPSHOT_BYTES);
    expect(keptBytes).toBeLessThanOrEqual(2 * RETAIN_BYTES);
    const told = await archived.job.hosts[0]?.line(({ type }) => type === "archiver-behind");
    expect(told?.error).toMatchObject({ code: "HISTORY_LOST", details: { shard: 0 } });
  } finally {
    await registration.end();
  }
});

test("hosts trim again when an archiver is gone for its grace time, and say that it has stopped", async () => {
  const registration = await register(2_000);
  await trainUntil(({ bytes }) => bytes > 1.5 * RETAIN_BYTES);
  expect((await broker.journal(0)).first).toBe(1);
  registration.stop();
  await trainUntil(({ bytes }) => bytes <= RETAIN_BYTES);
  const { archivers, stoppedArchivers } = await control(archived.job, "hosts", {});
  expect([archivers, stoppedArchivers]).toMatchObject([[], [{ archiver: "an-archive" }]]);
  const told = await archived.job.hosts[0]?.line(({ type }) => type === "archiver-stopped");
  expect(told?.error).toMatchObject({ code: "TIMEOUT" });
  const { stdout: status } = await archived.pserver("status");
  expect(status).toMatch(/archiver +stopped: process \d+ on /);
  const { stdout: doctor, code } = await archived.pserver("doctor");
  expect([code, doctor]).toEqual([0, expect.stringMatching(/warn +archiver: stopped: process/)]);
  const again = await register(HANG_MS);
  expect((await control(archived.job, "hosts", {}))["stoppedArchivers"]).toEqual([]);
  await again.end();
});

test("an archiver that ends takes its registration back at once", async () => {
  const registration = await register(HANG_MS);
  await trainUntil(({ bytes }) => bytes > 1.5 * RETAIN_BYTES);
  await registration.end();
  await archived.train(1);
  await snapshotAll(archived.job);
  expect((await broker.journal(0)).bytes).toBeLessThanOrEqual(RETAIN_BYTES + SNAPSHOT_BYTES);
});
