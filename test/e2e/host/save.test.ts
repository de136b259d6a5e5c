// Proves what a client that has a model saved is told and can do: it gets the progress; the save stops when
// the call is aborted, runs out of time or the command is interrupted, only that client can stop it; and no
// reply names a directory of the host. The host reads blocks only as far as a test lets it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { decodeMessage, encodeMessage, JobSubjects } from "../../../src/protocol/index.ts";
import { start as startCommand } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";
import { control } from "./control.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };
const PROGRAM = testProgram("gated-host");
const VALUES = Float32Array.of(1, 2, 3, 4);

let job: TestJob;
let client: Client;
let models: string;

beforeEach(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-saved-"));
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
});

afterEach(async () => {
  await job.remove();
  await rm(models, { recursive: true, force: true });
});

/** What lies in the model directory besides the records of who has saved what. */
async function saved(): Promise<string[]> {
  return (await readdir(models)).filter((name) => name !== ".pserver-saves");
}

/** A host that is saving as far as it may. */
interface GatedHost {
  /** Settles when it waits for a block that it may not read yet. */
  readonly waits: Promise<unknown>;
  open(): void;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
}

/** Starts the job on a host that reads `blocks` blocks of a model, and more once it is opened. */
async function serve(blocks: number): Promise<GatedHost> {
  const options = {
    ...{ job: job.job, id: "h1", shards: 2, modelDirectory: models },
    connection: { servers: [job.broker.url], timeoutMs: HANG_MS },
  };
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(options), String(blocks)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, "close");
    child.stdin.end();
    await closed;
  });
  const lines = createInterface({ input: child.stdout });
  await once(lines, "line");
  const waits = once(lines, "line");
  client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("v", VALUES);
  await client.initParam("w", VALUES);
  await client.finishInit();
  const kill = async (): Promise<void> => {
    const closed = once(child, "close");
    child.kill("SIGKILL");
    await closed;
  };
  return { waits, open: () => child.stdin.write("\n"), kill };
}

describe("a save", () => {
  test("tells how far it is, and then where it lies on which host", async () => {
    const { open } = await serve(1);
    const told: (readonly number[])[] = [];
    const answer = await client.saveModel("runs/m.npz", {
      onProgress: (...progress) => {
        told.push(progress);
        // On a busy machine it may tell before it has read the block that it may read.
        if (progress[0] === 16) open();
      },
    });
    expect(told).toContainEqual([16, 32]);
    const { size } = await stat(join(models, "runs", "m.npz"));
    expect(answer).toEqual({
      file: join(models, "runs", "m.npz"),
      bytes: size,
      format: "npz",
      host: "h1",
    });
  });

  test.each(["aborted", "out of time"])("that is %s stops, and leaves nothing", async (how) => {
    const { waits } = await serve(1);
    const aborting = new AbortController();
    // Time for the host to begin, also on a busy machine.
    const options = how === "aborted" ? { signal: aborting.signal } : { timeoutMs: 5_000 };
    const saving = client.saveModel("new/dir/m.safetensors", options);
    const refused = expect(saving).rejects.toMatchObject({
      code: how === "aborted" ? "ABORTED" : "TIMEOUT",
    });
    await waits;
    expect(await saved()).toEqual(["new"]);
    aborting.abort();
    await refused;
    // The block that it waits for has not come: it is the stop that ends it.
    await vi.waitFor(async () => expect(await saved()).toEqual([]), WAIT);
  });

  test("is stopped by Ctrl-C of the command", async () => {
    const { waits } = await serve(0);
    const running = startCommand(["save", "m.npz", "--url", job.broker.url, "--job", job.job]);
    await waits;
    expect(await saved()).toHaveLength(1);
    running.child.kill("SIGINT");
    const { code, stderr } = await running.finished;
    expect(stderr).toMatch(/^the host stops writing; .*\npserver: ABORTED: /);
    expect(code).toBe(130);
    await vi.waitFor(async () => expect(await saved()).toEqual([]), WAIT);
  });

  test("is not stopped by another who knows its token", async () => {
    const { open, waits } = await serve(0);
    const saving = control(job, "save", { path: "m.npz", token: "t" });
    await waits;
    const subjects = new JobSubjects(job.job);
    const inboxPrefix = subjects.inbox("b");
    const other = await connect({ servers: job.broker.url, inboxPrefix });
    onTestFinished(() => other.close());
    const stop = encodeMessage({ token: "t" });
    const reply = await other.request(subjects.control("b", "stop"), stop, { timeout: HANG_MS });
    expect(decodeMessage(reply.data).fields).toMatchObject({ stopped: false });
    open();
    expect(await saving).toMatchObject({ file: join(models, "m.npz") });
  });
});

test("what a host that was killed left of a save goes when the next one starts", async () => {
  const { waits, kill } = await serve(1);
  const aborting = new AbortController();
  const saving = client.saveModel("runs/m.safetensors", { signal: aborting.signal });
  const ended = saving.catch(() => {});
  await waits;
  await kill();
  const left = await readdir(join(models, "runs"));
  expect(left).toEqual([expect.stringMatching(/^\.pserver-save-.*\.tmp$/)]);
  await job.host({ id: "h2", shards: 2, leaseMs: 5_000, modelDirectory: models });
  await vi.waitFor(
    async () => expect(await readdir(join(models, "runs"))).not.toContain(left[0]),
    WAIT,
  );
  aborting.abort();
  await ended;
});

test("an error names no directory of the host", async () => {
  await serve(0);
  await writeFile(join(models, "file"), "");
  await writeFile(join(models, "m.npz"), "");
  for (const path of ["file/m.npz", "file", "../m.npz", `${"n".repeat(256)}.npz`, "m.npz/"]) {
    const error = await client.saveModel(path).catch((thrown: unknown) => thrown);
    expect(error, path).toMatchObject({ code: expect.stringMatching(/^(?:BAD_PATH|IO)$/) });
    const { message, details } = error as Error & { readonly details: unknown };
    expect(message + JSON.stringify(details)).not.toContain(tmpdir());
  }
});

test.each([
  ["does not exist", async () => undefined],
  ["is not a directory", async () => await writeFile(models, "")],
])("a model directory that %s is named with its host, to the operator whole", async (told, put) => {
  const host = await job.host({ id: "h1", shards: 1, modelDirectory: models });
  client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("w", VALUES);
  await rm(models, { recursive: true });
  await put();
  const rest = `of host h1 ${told}: create it again, or start the host with another --model-dir`;
  const shown = `the model directory …/${basename(models)} ${rest}`;
  await expect(client.saveModel("m.npz")).rejects.toMatchObject({ code: "IO", message: shown });
  const { error } = await host.line(({ type }) => type === "error");
  expect(error?.message).toBe(`the model directory ${models} ${rest}`);
});

test("a trainer may save as much as its quota says, also after the host has been started again", async () => {
  const options = { modelDirectory: models, trainerSavesMax: 1 };
  const first = await job.host(options);
  client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("v", VALUES);
  await client.finishInit();
  await client.saveModel("one.npz");
  await first.stop();
  await job.host(options);
  await expect(client.saveModel("two.npz")).rejects.toMatchObject({
    code: "QUOTA",
    message: expect.stringMatching(/at most 1 saved models; .* 2\. .*--trainer-quota-saves/),
  });
  await client.saveModel("one.npz");
  await (await job.trainer("b")).saveModel("two.npz");
  expect((await saved()).sort()).toEqual(["one.npz", "two.npz"]);
});
