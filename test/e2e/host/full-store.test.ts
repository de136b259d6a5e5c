// Proves on a real broker, whose store is no larger than what its streams may hold, that journals, tape and snapshots
// which are full to the brim take no room from leases and watermarks: the host keeps its leases, a shard with room
// goes on, and another host takes over. A snapshot that finds no room is reported, and made once there is some.
import { type JetStreamClient, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test, vi } from "vitest";
import {
  ENTRIES_BYTES,
  LEASES_BYTES,
  snapshotBytesFor,
} from "../../../src/actors/job/storage-plan.ts";
import { watermarkKey } from "../../../src/actors/journal/watermark.ts";
import { bucketStream, hashName, JobSubjects } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const MIB = 1024 ** 2;
const SHARDS = 2;
const JOURNAL_BYTES = 4 * MIB;
const TAPE_BYTES = MIB;
const SUBJECTS = new JobSubjects("j");
const LIMITS = { journalBytesMax: JOURNAL_BYTES, shards: SHARDS };
const WAIT = { timeout: HANG_MS, interval: 50 };

/** All limits, and what two small parameters add to them. */
const STORE_BYTES =
  SHARDS * JOURNAL_BYTES +
  TAPE_BYTES +
  snapshotBytesFor(LIMITS, 0) +
  ENTRIES_BYTES +
  LEASES_BYTES +
  64 * 1024;

/** More than all of the store that is not kept for leases and entries. */
const UNTIL_FULL = 64;

let job: TestJob | undefined;

afterEach(() => job?.remove());

/** Stores messages on a subject, each smaller than the ones before, until the stream takes none. */
async function fill(client: JetStreamClient, subject: string): Promise<void> {
  for (let bytes = 256 * 1024; bytes >= 256; bytes /= 4) {
    const store = async (): Promise<boolean> => {
      try {
        await client.publish(subject, new Uint8Array(bytes), { timeout: HANG_MS });
        return true;
      } catch (error) {
        expect(String(error)).toContain("maximum bytes exceeded");
        return false;
      }
    };
    for (let i = 0; i < UNTIL_FULL && (await store()); i++);
  }
}

/** A name of a parameter that lies on this shard. */
function nameOn(shard: number): string {
  for (let i = 0; ; i++) if (hashName(`w${i}`) % SHARDS === shard) return `w${i}`;
}

test("journals, tape and snapshots that are full leave room for leases and watermarks", async () => {
  const options = { shards: SHARDS, journalBytesMax: JOURNAL_BYTES, tapeBytesMax: TAPE_BYTES };
  job = await TestJob.start(options, { jetstreamConfig: `max_file_store: ${STORE_BYTES}` });
  const host = await job.host();
  const client = await job.trainer("a");
  const [full, open] = [nameOn(0), nameOn(1)];
  for (const name of [full, open]) {
    await client.createIfNotAlreadyCreated(name, Float32Array.of(1));
  }
  const connection = await connect({ servers: job.broker.url });
  const broker = jetstream(connection);
  const { streams } = await jetstreamManager(connection);
  /** The revision of an entry, or of a lease. */
  const revisionOf = async (bucket: string, key: string): Promise<number> => {
    const query = { last_by_subj: `$KV.${bucket}.${key}` };
    return (await streams.getMessage(bucketStream(bucket), query))?.seq ?? 0;
  };

  // Of shards that do not exist: no host removes them.
  await fill(broker, SUBJECTS.snapshotState(SHARDS, 0));
  for (let i = 0; i < 8; i++) await broker.publish(SUBJECTS.tape(SHARDS), new Uint8Array(MIB / 8));
  // Whoever sends these is no trainer: the host rejects each, and would trim the journal after a snapshot.
  await fill(broker, SUBJECTS.note(0, "nobody"));
  const { error } = await host.line(({ type }) => type === "snapshot-failed");
  expect(error).toMatchObject({ code: "JOURNAL_FULL", details: { shard: 0 } });

  const lease = await revisionOf(SUBJECTS.leaseBucket(), "shard.0");
  const mark = await revisionOf(SUBJECTS.bucket(), watermarkKey(1));
  await client.pushFull(open, Float32Array.of(1), 1, 1);
  await vi.waitFor(async () => {
    expect(await revisionOf(SUBJECTS.leaseBucket(), "shard.0")).toBeGreaterThan(lease);
    expect(await revisionOf(SUBJECTS.bucket(), watermarkKey(1))).toBeGreaterThan(mark);
  }, WAIT);
  await job.crash(host);
  const next = await job.host();
  expect(next.serving).toEqual([0, 1]);
  expect((await client.pullFull(open)).data).toEqual(Float32Array.of(2));

  await streams.purge(SUBJECTS.snapshotStream(), { filter: SUBJECTS.snapshotState(SHARDS, 0) });
  await vi.waitFor(async () => {
    const { state } = await streams.info(SUBJECTS.journalStream(0, 1));
    expect(state.bytes).toBeLessThan(JOURNAL_BYTES / 2);
  }, WAIT);
  await client.pushFull(full, Float32Array.of(1), 1, 1);
  expect((await client.pullFull(full)).data).toEqual(Float32Array.of(2));
  await connection.close();
});
