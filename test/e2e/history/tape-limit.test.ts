// Proves on a real broker that trainers cannot fill it with what hosts write about them: notes and rejected records of
// one trainer beyond its share get no lines, which the tape, the host and `status` tell, and others' lines stay; at the
// limit of the tape the oldest lines go, which is no damage; and the broker stays far from full all the while.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const TAPE_BYTES = 1024 ** 2;
const SHARDS = 2;
const NOTE = "x".repeat(3_900);

/** Notes of about 4 KB: more than the whole tape may have. */
const FLOOD = 300;

let job: TestJob | undefined;

afterEach(() => job?.remove());

async function begin(): Promise<TestJob> {
  job = await TestJob.start({ shards: SHARDS, tapeBytesMax: TAPE_BYTES });
  return job;
}

async function pserver(url: string, ...args: string[]) {
  const finished = await run([...args, "--job", "j", "--json"], {
    environment: { PSERVER_URL: url },
  });
  const lines = finished.stdout.split("\n").filter((line) => line !== "");
  return { ...finished, values: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

interface Line {
  readonly verb: string;
  readonly trainer?: string;
  readonly session?: number;
  readonly note?: Record<string, unknown>;
}

async function notesFrom(client: Client, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await client.note({ i, text: NOTE });
}

/** The bytes of the tape's stream, and how many it may have. */
async function tapeStream(url: string): Promise<{ bytes: number; bytesMax: number }> {
  const connection = await connect({ servers: url });
  const { streams } = await jetstreamManager(connection);
  const { state, config } = await streams.info(new JobSubjects("j").tapeStream());
  await connection.close();
  return { bytes: state.bytes, bytesMax: config.max_bytes };
}

async function tapeOf(url: string): Promise<Record<string, unknown>> {
  const { values } = await pserver(url, "status");
  return values[0]?.["tape"] as Record<string, unknown>;
}

test("a trainer's flood of notes takes its share, is told, and leaves others' lines", async () => {
  const { broker } = await begin();
  const host = await job?.host();
  const [flooder, quiet] = await Promise.all(
    ["flooder", "quiet"].map((trainer) => job?.trainer(trainer)),
  );
  if (host === undefined || flooder === undefined || quiet === undefined) throw new Error("no job");
  await quiet.note({ mark: "before" });
  await notesFrom(flooder, FLOOD);
  await quiet.note({ mark: "after" });
  const told = await host.line(({ type }) => type === "tape-incomplete");
  expect(told.error).toMatchObject({ code: "QUOTA", details: { trainer: "flooder" } });
  const log = async (): Promise<Line[]> => {
    return (await pserver(broker.url, "log")).values as unknown as Line[];
  };
  // The last lines wait a second for others.
  await expect
    .poll(async () => (await log()).some(({ verb }) => verb === "left-out"), {
      timeout: HANG_MS,
      interval: 500,
    })
    .toBe(true);
  const lines = await log();
  const marks = lines
    .filter(({ trainer }) => trainer === "quiet")
    .map(({ note }) => note?.["mark"]);
  expect(marks).toEqual(["before", "after"]);
  const own = lines.filter(({ trainer }) => trainer === "flooder");
  const tape = async () => {
    const { values } = await pserver(broker.url, "status");
    return ((values[0]?.["shards"] ?? []) as { tape: Record<string, number> }[])[0]?.tape;
  };
  const written = async () => {
    const notes = (await log()).filter(
      ({ verb, trainer }) => verb === "note" && trainer === "flooder",
    );
    return notes.length;
  };
  // How many depends on the time that the flood takes: the share comes back with it. What the tape has not reached yet
  // is listed from the journal.
  await expect
    .poll(async () => (await written()) + ((await tape())?.["thinned"] ?? 0), {
      timeout: HANG_MS,
      interval: 500,
    })
    .toBe(FLOOD);
  expect(await written()).toBeLessThan(FLOOD);
  expect(await tape()).toMatchObject({ leftOut: 0 });
  const { bytes, bytesMax } = await tapeStream(broker.url);
  expect(bytesMax).toBe(TAPE_BYTES);
  expect(bytes).toBeLessThan(TAPE_BYTES);
  // What has no line is found in the journal.
  const [{ session } = {}] = own;
  const found = await pserver(broker.url, "show", `flooder/${session}:${FLOOD}`);
  expect({ code: found.code, stderr: found.stderr }).toEqual({ code: 0, stderr: "" });
});

test("at its limit the tape drops its oldest lines, which is no damage", async () => {
  const { broker } = await begin();
  await job?.host();
  // Nobody goes beyond a share; together they write more than there is room for.
  for (let round = 0; (await tapeOf(broker.url))["trimmedToMs"] === undefined; round++) {
    const client = await job?.trainer(`t${round}`);
    if (client !== undefined) await notesFrom(client, 14);
    await client?.close();
  }
  const { bytes } = await tapeStream(broker.url);
  expect(bytes).toBeLessThanOrEqual(TAPE_BYTES);
  expect(bytes).toBeGreaterThan(TAPE_BYTES / 2);
  const log = await pserver(broker.url, "log");
  expect({ code: log.code, stderr: log.stderr }).toEqual({ code: 0, stderr: "" });
  // The journal still has the records whose lines are gone.
  expect((log.values as unknown as Line[])[0]).toMatchObject({ verb: "rules" });
  expect((await pserver(broker.url, "verify")).code).toBe(0);
});
