// Proves, in a headless Chromium on a real job, that the page forks and rewinds like the commands: it asks for the
// server's token and for the job's name, says what would be given up, shows what the command prints, and its errors; a
// rewind that was interrupted is shown, and completed there. A server without a token only names the commands.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { launch, type Running, run } from "../../cli/spawn-command.ts";
import { HANG_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";

const WAIT = { timeout: HANG_MS };

let home: string;
let http: string;
let client: Client;
let browser: Browser;
let page: Page;
let up: Running;
let environment: Record<string, string>;
/** A moment after the first update, and before the second one. */
let between: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-page-changes-"));
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, "secret\n");
  const place = ["--port", "0", "--store", join(home, "store"), "--shards", "1"];
  up = launch(["up", ...place, "--json", "--http", "0", "--http-token", tokenFile]);
  const ready = JSON.parse(await up.firstLine);
  http = ready.http;
  const token = (await readFile(ready.tokenFile, "utf8")).trim();
  environment = { PSERVER_URL: ready.url, NATS_TOKEN: token };
  const { url } = ready;
  client = await connect({
    ...{ url, token, job: "default", trainer: "ann", timeoutMs: HANG_MS },
    // A rewind gives up what was acknowledged.
    onFallback: () => undefined,
  });
  await client.createIfNotAlreadyCreated("w", Float32Array.of(0, 0));
  await push();
  // Records have times in milliseconds: this one is after the first update, and before the second.
  between = await momentAfterLastRecord();
  await push();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

afterAll(async () => {
  await browser?.close();
  await client?.close();
  up?.child.kill("SIGTERM");
  await up?.finished;
  await rm(home, { recursive: true, force: true });
});

beforeEach(async () => {
  page = await browser.newPage();
  page.setDefaultTimeout(HANG_MS);
});

async function push(): Promise<void> {
  await client.sendGrads({ w: Float32Array.of(-1, -1) }, { learningRate: 1 });
}

async function value(): Promise<number[]> {
  const { data } = await client.pullFull("w");
  return [...(data as Float32Array)];
}

async function momentAfterLastRecord(): Promise<string> {
  const { stdout } = await run(["log", "--json"], { environment });
  const last = stdout.trim().split("\n").at(-1) ?? "";
  return new Date(Date.parse(JSON.parse(last).time) + 1).toISOString();
}

/** Opens the page at a view, and tells it the token. */
async function openWithToken(view: string): Promise<void> {
  await page.goto(`${http}/#default/${encodeURIComponent(view)}`);
  const dialog = page.getByRole("dialog", { name: "This server asks for its token" });
  await dialog.getByLabel("Token").fill("wrong");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.getByText("That is not the token.").waitFor();
  await dialog.getByLabel("Token").fill("secret");
  await dialog.getByRole("button", { name: "Continue" }).click();
  await page.getByText("● live").waitFor();
}

/** Moves the slider a little back from the newest state. */
async function moveBack(): Promise<void> {
  await page.getByText("Drag the slider to see the model as it was.").waitFor();
  await page.getByRole("slider").focus();
  await page.keyboard.press("ArrowLeft");
}

/** Begins a rewind to the present state of the job in a process that is killed before a shard has gone back. */
async function leaveRewindUnfinished(): Promise<void> {
  const { stdout } = await run(["status", "--json"], { environment });
  const at = (JSON.parse(stdout) as { shards: { generation: number; seq: number }[] }).shards.map(
    ({ generation, seq }) => ({ generation, seq }),
  );
  const { PSERVER_URL: url, NATS_TOKEN: token } = environment;
  const what = JSON.stringify({ url, token, job: "default", at, killAt: "begun" });
  const child = spawn(process.execPath, [testProgram("fork-process"), what], { stdio: "inherit" });
  const [, signal] = await once(child, "close");
  expect(signal).toBe("SIGKILL");
}

/** Asks the server for a change, as the page does; returns its events. */
async function post(what: string, body: unknown): Promise<{ status: number; text: string }> {
  const response = await fetch(`${http}/api/jobs/default/${what}`, {
    method: "POST",
    headers: { Authorization: "Bearer secret", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

test("a fork makes the job that the command makes, and the page lists it", async () => {
  await openWithToken("Time travel");
  await page.getByRole("button", { name: "Fork a new job" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork job default" });
  await dialog.getByLabel("Name of the new job").fill("other");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByText("made job other: 1 parameter").waitFor();
  await dialog.getByText("✓ Done.").waitFor();
  const { stdout } = await run(["jobs", "--json"], { environment });
  expect(stdout).toContain('"job":"other"');
  await page.keyboard.press("Escape");
  // The same name again is refused, as by the command, and may be changed.
  await page.getByRole("button", { name: "Fork a new job" }).click();
  await dialog.getByLabel("Name of the new job").fill("other");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByText(/pserver: JOB_EXISTS: /).waitFor();
  await dialog.getByText("It failed").waitFor();
  expect(await dialog.getByLabel("Name of the new job").isEnabled()).toBe(true);
  await page.close();
});

test("a rewind says what it gives up, wants the job's name, and goes back", async () => {
  expect(await value()).toEqual([2, 2]);
  const plan = await post("rewind", { to: between, dryRun: true });
  expect(plan.text).toContain("job default would go back, and give up 1 record");
  expect(await value()).toEqual([2, 2]);
  expect((await post("rewind", { to: between, confirm: "other" })).status).toBe(400);
  const done = await post("rewind", { to: between, confirm: "default" });
  expect(done.text).toContain("shard 0 goes on under generation 2");
  expect(done.text).toContain('event: end\ndata: {"exitCode":0');
  expect(await value()).toEqual([1, 1]);

  await push();
  await openWithToken("Time travel");
  await moveBack();
  await page.getByRole("button", { name: "Rewind job default" }).click();
  const dialog = page.getByRole("dialog", { name: "Rewind job default" });
  await dialog.getByText(/would go back, and give up \d+ record/).waitFor();
  const go = dialog.getByRole("button", { name: "Rewind", exact: true });
  await dialog.getByLabel("Type the job's name").fill("defaul");
  expect(await go.isEnabled()).toBe(false);
  await dialog.getByLabel("Type the job's name").fill("default");
  await go.click();
  await dialog.getByText("shard 0 goes on under generation 3").waitFor();
  await dialog.getByText("✓ Done.").waitFor();
  await page.close();
});

test("a rewind that is not complete is shown, and dropped there", async () => {
  await openWithToken("Overview");
  const unfinished = page.getByText("A rewind of this job is not complete");
  expect(await unfinished.count()).toBe(0);
  await leaveRewindUnfinished();
  await unfinished.waitFor();
  await page.getByRole("tab", { name: "Time travel" }).click();
  await page.getByText(/A rewind that was begun at .* is not complete/).waitFor();
  await page.getByRole("button", { name: "Drop it" }).click();
  const dialog = page.getByRole("dialog", { name: "Drop the rewind of job default" });
  await dialog.getByLabel("Type the job's name").fill("default");
  await dialog.getByRole("button", { name: "Drop", exact: true }).click();
  await dialog.getByText(/dropped the rewind/).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByText("is not complete").count(), WAIT).toBe(0);
  await page.close();
});

test("a server without a token names the commands", async () => {
  const shown = launch(["ui", "--no-open", "--json"], { environment });
  try {
    const { url } = JSON.parse(await shown.firstLine);
    await page.goto(`${url}/#default/${encodeURIComponent("Time travel")}`);
    await page.getByText("pserver fork default --at now --as default-fork").waitFor();
    expect(await page.getByRole("button", { name: "Fork a new job" }).count()).toBe(0);
    const refused = await fetch(`${url}/api/jobs/default/rewind`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ to: "now", confirm: "default" }),
    });
    expect(refused.status).toBe(403);
  } finally {
    shown.child.kill("SIGTERM");
    await shown.finished;
  }
});
