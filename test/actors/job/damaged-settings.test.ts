// Proves what becomes of a job whose settings are damaged or lost, on JetStream in memory: their copy in the
// configuration of the snapshot stream says what they were; the job is listed as damaged, and can be removed, but not
// while a host is alive. And that a removal and a host that joins meanwhile leave nothing that stops the next job of
// the name.
import type { NatsConnection } from "@nats-io/transport-node";
import { beforeEach, describe, expect, test } from "vitest";
import { hostKey } from "../../../src/actors/host/shard-claims.ts";
import { describeJob } from "../../../src/actors/job/describe-job.ts";
import { SETTINGS_KEY, type WantedSettings } from "../../../src/actors/job/job-settings.ts";
import {
  openAnyJob,
  openJob,
  openStoredJob,
  streamsOfJob,
} from "../../../src/actors/job/open-job.ts";
import { JobRemoval } from "../../../src/actors/job/remove-job.ts";
import { ensureSnapshots, readSettingsCopy } from "../../../src/actors/job/settings-copy.ts";
import { openExistingBucket } from "../../../src/actors/journal/kv-bucket.ts";
import { jobEntry } from "../../../src/actors/lifecycle/machine.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { openJetStream } from "../../../src/transport/jetstream.ts";
import { Processes } from "../../simulation/operators/processes.ts";
import { SimulatedBroker } from "../../simulation/operators/simulated-broker.ts";
import { Random } from "../../simulation/random.ts";
import { heldConnection } from "../../support/held-connection.ts";

const SUBJECTS = new JobSubjects("j");
const WANTED = { shards: 3, leaseMs: 2_000, journalBytesMax: 1 << 24, tape: false } as const;
const SNAPSHOTS = SUBJECTS.snapshotStream();

let broker: SimulatedBroker;
let connection: NatsConnection;

beforeEach(() => {
  broker = new SimulatedBroker();
  const processes = new Processes(new Random(1), (_process, message) => broker.take(message));
  connection = processes.instant("test");
});

const managerOf = (of: NatsConnection) => openJetStream(of).jetstreamManager(false);

/** Joins the job as a host does, on this connection. */
async function join(wanted: WantedSettings = WANTED, of = connection) {
  return await openJob({
    ...{ connection: of, manager: await managerOf(of), subjects: SUBJECTS, wanted },
  });
}

/** Makes the job, with something in its snapshot stream. */
async function makeJob(wanted: WantedSettings = WANTED) {
  const opened = await join(wanted);
  broker.take({ subject: SUBJECTS.manifest(0), data: Uint8Array.of(1) });
  return opened;
}

/** Changes a byte of an entry, behind the broker's back. */
function damage(key: string): void {
  const stream = broker.stream("KV_PS_j");
  const stored = stream.lastOf(`$KV.PS_j.${key}`);
  if (stored === undefined) throw new Error(`no entry ${key}`);
  const data = stored.data.slice();
  data[12] = (data[12] ?? 0) ^ 1;
  stream.messages.set(stored.seq, { ...stored, data });
}

/** Removes an entry, behind the broker's back. */
function lose(key: string): void {
  const stream = broker.stream("KV_PS_j");
  stream.messages.delete(stream.lastOf(`$KV.PS_j.${key}`)?.seq ?? 0);
}

/** What may befall the settings of a job. */
const FATES: readonly (readonly [string, () => void])[] = [
  ["damaged", () => damage(SETTINGS_KEY)],
  ["lost", () => lose(SETTINGS_KEY)],
  ["lost with their bucket", () => broker.streams.delete("KV_PS_j")],
];

async function described() {
  const streams = await streamsOfJob(await managerOf(connection), "j");
  return await describeJob(connection, { job: "j", streams });
}

function removal(of = connection): JobRemoval {
  return new JobRemoval({ connection: of, job: "j", etcd: undefined, timeoutMs: 1_000 });
}

async function remove(of = connection): Promise<string[]> {
  const removed: string[] = [];
  await removal(of).run((name) => removed.push(name));
  return removed;
}

const namesLeft = (): string[] => [...broker.streams.keys()].sort();

describe.each(FATES)("settings that are %s", (_what, befall) => {
  test("are known from their copy", async () => {
    const { settings } = await makeJob();
    befall();
    await expect(openStoredJob(connection, "j")).rejects.toMatchObject({
      code: "JOB_DAMAGED",
      details: { key: SETTINGS_KEY },
    });
    const opened = await openAnyJob(connection, "j");
    expect(opened.settings).toEqual(settings);
    expect(opened.problem).toMatchObject({ code: "JOB_DAMAGED" });
    expect(opened.lacksBucket).toBe(!broker.streams.has("KV_PS_j"));
  });

  test("do not let a host join, and nobody makes the job anew", async () => {
    await makeJob();
    befall();
    await expect(join()).rejects.toMatchObject({ code: "JOB_DAMAGED" });
  });

  test.each([true, false])(
    "let the job be listed and removed; with a copy: %s",
    async (hasCopy) => {
      await makeJob();
      befall();
      const snapshots = broker.stream(SNAPSHOTS);
      if (!hasCopy) snapshots.config = { ...snapshots.config, metadata: {} };
      expect(await described()).toMatchObject({ state: "damaged", shards: hasCopy ? 3 : 0 });
      const names = namesLeft();
      expect((await remove()).sort()).toEqual(names);
      expect(namesLeft()).toEqual([]);
    },
  );

  test.each([true, false])(
    "do not let it be removed while a host is alive; with a copy: %s",
    async (hasCopy) => {
      const { leases } = await makeJob();
      await leases.claim(hostKey("h"), { owner: "h" });
      befall();
      const snapshots = broker.stream(SNAPSHOTS);
      if (!hasCopy) snapshots.config = { ...snapshots.config, metadata: {} };
      const names = namesLeft();
      await expect(removal().plan()).rejects.toMatchObject({ code: "JOB_EXISTS" });
      await expect(remove()).rejects.toMatchObject({ code: "JOB_EXISTS" });
      expect(namesLeft()).toEqual(names);
    },
  );
});

test("a removal of a job with damaged settings that was interrupted is shown, and completed", async () => {
  await makeJob();
  damage(SETTINGS_KEY);
  const snapshots = broker.stream(SNAPSHOTS);
  snapshots.config = { ...snapshots.config, metadata: {} };
  const cutOff = removal().run((name) => {
    throw new Error(`cut off after ${name}`);
  });
  await expect(cutOff).rejects.toThrow("cut off");
  expect(await described()).toMatchObject({ state: "removing", shards: 0 });
  await expect(join()).rejects.toMatchObject({ code: "JOB_EXISTS" });
  await remove();
  expect(namesLeft()).toEqual([]);
});

test("a lifecycle that cannot be read is listed as damaged", async () => {
  const { bucket } = await makeJob();
  const context = { epoch: 1, trainer: "a", session: 1, at: [], sealed: 0, revised: 0 };
  await jobEntry.change({ bucket, pause: () => Promise.resolve() }, () => ({
    ...{ state: "ready", context },
  }));
  expect((await described()).state).toBe("ready");
  damage("job");
  expect(await described()).toMatchObject({ state: "damaged", shards: 3 });
});

describe("the copy", () => {
  test("that was changed is none", async () => {
    await makeJob();
    const snapshots = broker.stream(SNAPSHOTS);
    const [[key = "", text = ""] = []] = Object.entries(snapshots.config.metadata ?? {});
    const other = text.replace('"shards":3', '"shards":4');
    expect(other).not.toBe(text);
    snapshots.config = { ...snapshots.config, metadata: { [key]: other } };
    expect(await readSettingsCopy(await managerOf(connection), SUBJECTS)).toBeUndefined();
    damage(SETTINGS_KEY);
    await expect(openAnyJob(connection, "j")).rejects.toMatchObject({ code: "JOB_DAMAGED" });
  });

  test("is written again if it is another one, or none, and what else the stream has stays", async () => {
    const { settings } = await makeJob();
    const snapshots = broker.stream(SNAPSHOTS);
    const { metadata } = snapshots.config;
    for (const other of [{}, { ...metadata, "pserver-settings": '{"shards":9,"crc":1}' }]) {
      snapshots.config = { ...snapshots.config, metadata: { ...other, theirs: "1" } };
      await join();
      expect(await readSettingsCopy(await managerOf(connection), SUBJECTS)).toEqual(settings);
      expect(snapshots.config.metadata).toMatchObject({ theirs: "1" });
    }
  });

  test("keeps the origin of a fork when a host joins", async () => {
    const { settings } = await makeJob();
    const manager = await managerOf(connection);
    const origin = { of: "other", madeMs: 7, at: [{ generation: 1, seq: 5 }] };
    await ensureSnapshots(manager, SUBJECTS, settings, origin);
    await join();
    expect(await readSettingsCopy(manager, SUBJECTS)).toEqual({ ...settings, fork: origin });
  });
});

describe("a host that joins a job while it is removed", () => {
  /** A connection that waits once, after the answer to its nth request to this subject, until `meanwhile` is over. */
  function heldOnce(
    subject: string,
    nth: number,
    meanwhile: () => Promise<unknown>,
  ): NatsConnection {
    let count = 0;
    return heldConnection(connection, async (each) => {
      if (each !== subject) return;
      count += 1;
      if (count === nth) await meanwhile();
    });
  }

  test.each([
    ["the bucket of leases", "$JS.API.STREAM.MSG.GET.KV_PS_j", 1],
    ["the stream of snapshots", `$JS.API.STREAM.INFO.${SNAPSHOTS}`, 1],
  ])(
    "does not go on, and %s that it leaves does not stop the next job",
    async (_, subject, nth) => {
      await makeJob();
      broker.streams.delete(SNAPSHOTS);
      const joining = join(
        {},
        heldOnce(subject, nth, () => remove()),
      );
      await expect(joining).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
      expect(namesLeft()).toContain(SNAPSHOTS);
      expect((await described()).state).toBe("incomplete");
      const { settings } = await join({ ...WANTED, shards: 2, leaseMs: 7_000 });
      expect(settings).toMatchObject({ shards: 2, leaseMs: 7_000 });
      expect(await readSettingsCopy(await managerOf(connection), SUBJECTS)).toEqual(settings);
      expect(broker.stream("KV_PS_j_LEASE").config.max_age).toBe(7_000 * 1e6);
    },
  );

  test("is told that the job is being removed", async () => {
    await makeJob();
    const cutOff = async (): Promise<void> => {
      const run = removal().run(() => {
        throw new Error("cut off");
      });
      await expect(run).rejects.toThrow("cut off");
    };
    const joining = join({}, heldOnce(`$JS.API.STREAM.INFO.${SNAPSHOTS}`, 1, cutOff));
    await expect(joining).rejects.toMatchObject({ code: "JOB_EXISTS" });
  });

  test("has what it made removed, too, if it joined before the removal has shut the job", async () => {
    await makeJob();
    broker.streams.delete("KV_PS_j_LEASE");
    const held = heldOnce("$JS.API.STREAM.LIST", 1, () => join());
    expect(await remove(held)).toContain("KV_PS_j_LEASE");
    expect(namesLeft()).toEqual([]);
  });

  test("stops the removal if it is alive by then, and the settings are as before", async () => {
    await makeJob();
    const held = heldOnce("$JS.API.STREAM.LIST", 2, async () => {
      const bucket = await openExistingBucket(connection, "PS_j_LEASE");
      await bucket.create(hostKey("h"), { owner: "h" });
    });
    const names = namesLeft();
    await expect(remove(held)).rejects.toMatchObject({ code: "JOB_EXISTS" });
    expect(namesLeft()).toEqual(names);
    expect((await described()).state).toBe("uninitialized");
  });

  test("under the name of a job that another removal has taken away keeps what it made", async () => {
    await makeJob();
    const held = heldOnce("$JS.API.STREAM.LIST", 2, async () => {
      await remove();
      await makeJob({ ...WANTED, shards: 1 });
    });
    await expect(remove(held)).rejects.toMatchObject({ code: "BUSY" });
    expect(await described()).toMatchObject({ state: "uninitialized", shards: 1 });
    expect((await remove()).sort()).toEqual(["KV_PS_j", "KV_PS_j_LEASE", SNAPSHOTS]);
  });
});
