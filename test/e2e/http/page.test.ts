// Proves, in a headless Chromium on a real job, that the page shows what a training does: hosts and shards, trainers,
// losses, updates, a parameter's past, and the model at a moment that is dragged to; that names of trainers and
// parameters stay text; that it is usable with the keyboard and fits a narrow screen; and that it loads nothing from
// elsewhere.
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { launch, type Running } from "../../cli/spawn-command.ts";
import { HANG_MS } from "../../support/limits.ts";

const CHROMIUM = "/usr/bin/chromium";
const HOSTILE = "<img src=x onerror=document.title='taken'>";
const TABS = ["Overview", "Trainers", "Charts", "Updates", "Parameters", "Time travel"];

let home: string;
let http: string;
let client: Client;
let browser: Browser;
let page: Page;
let up: Running;
const asked: string[] = [];
const problems: string[] = [];

beforeAll(async () => {
  expect(existsSync(CHROMIUM), "scripts/setup-browser.sh installs it").toBe(true);
  home = await mkdtemp(join(tmpdir(), "pserver-page-"));
  const store = join(home, "store");
  up = launch(["up", "--port", "0", "--store", store, "--shards", "2", "--json", "--http", "0"]);
  const ready = JSON.parse(await up.firstLine);
  http = ready.http;
  const token = (await readFile(ready.tokenFile, "utf8")).trim();
  const { url } = ready;
  client = await connect({ url, token, job: "default", trainer: "ann", timeoutMs: HANG_MS });
  expect(await client.beginInit()).toBe(true);
  await client.initParam("w", Float32Array.of(1, 2, 3), { learningRate: 1 });
  await client.initParam(HOSTILE, Float32Array.of(0), { learningRate: 1 });
  await client.finishInit();
  await client.note({ loss: 3, remark: HOSTILE });
  await client.sendGrads({ w: Float32Array.of(1, 0, 0), [HOSTILE]: Float32Array.of(1) });
  await client.note({ loss: 2 });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(HANG_MS);
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", ({ message }) => problems.push(message));
  page.on("console", (message) => {
    // A server that folds journals for one request answers others with BUSY, which the page waits for.
    const isBusy = message.text().includes("503");
    if (message.type() === "error" && !isBusy) problems.push(message.text());
  });
  await page.goto(http);
  await page.getByText("● live").waitFor();
});

afterAll(async () => {
  await browser?.close();
  await client?.close();
  up?.child.kill("SIGTERM");
  await up?.finished;
  await rm(home, { recursive: true, force: true });
});

async function open(tab: string): Promise<void> {
  await page.getByRole("tab", { name: tab }).click();
}

/** The cells of a row that has this text in one of them. */
async function cellsOf(table: string, text: string): Promise<string[]> {
  const row = page.getByRole("region", { name: table }).getByRole("row").filter({ hasText: text });
  await row.first().waitFor();
  return await row.first().getByRole("cell").allInnerTexts();
}

test("hosts and shards, and each trainer, are shown as they are, live", async () => {
  await open("Overview");
  expect((await cellsOf("Shards", "serving")).slice(0, 2)).toEqual(["0", "● serving"]);
  await open("Trainers");
  expect((await cellsOf("Trainers", "ann")).slice(0, 2)).toEqual(["ann", "● alive"]);
  // What comes while the page is open is shown without asking.
  await client.sendGrads({ w: Float32Array.of(0, 1, 0) });
  await page
    .getByRole("cell", { name: / s ago$/ })
    .first()
    .waitFor();
});

test("losses have a line for each trainer", async () => {
  await open("Charts");
  await page.getByRole("img", { name: "loss by time of ann" }).waitFor();
  await page.getByLabel("show").fill("nothing");
  await page.getByLabel("show").press("Enter");
  await page.getByText("Nothing has been noted as nothing yet").waitFor();
});

test("an update is listed, filtered, and shown in full", async () => {
  await open("Updates");
  await page.getByLabel("parameter").fill("w");
  await page.getByLabel("parameter").press("Enter");
  await cellsOf("Updates", "push");
  const places = page.getByRole("button", { name: /^show update / });
  await places.first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText('"changedElements": 1').waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
});

test("what has the focus keeps it, and what is scrolled stays, while updates come", async () => {
  await open("Updates");
  const places = page.getByRole("button", { name: /^show update / });
  const first = await places.first().getAttribute("aria-label");
  await places.first().focus();
  await page.setViewportSize({ width: 420, height: 800 });
  const region = "document.querySelector('.wide[aria-label=Updates]')";
  await page.evaluate(`${region}.scrollLeft = 50`);
  await client.sendGrads({ w: Float32Array.of(0, 0, 0) });
  await expect
    .poll(() => places.first().getAttribute("aria-label"), { timeout: HANG_MS })
    .not.toBe(first);
  expect(await page.locator(":focus").getAttribute("aria-label")).toBe(first);
  expect(await page.evaluate<number>(`${region}.scrollLeft`)).toBe(50);
  await page.setViewportSize({ width: 1400, height: 900 });
});

test("a parameter's past is drawn, and who moved an element is told", async () => {
  await open("Parameters");
  await page.getByRole("button", { name: "show w", exact: true }).click();
  await page.getByRole("img", { name: "norm, least and largest value of w by time" }).waitFor();
  await page.getByLabel("indices of the element").fill("1");
  await page.getByRole("button", { name: "Who moved it?" }).click();
  // The first change is its initialization.
  await page.getByText("w[1]: changed 2 times, now 1.").waitFor();
  expect(await cellsOf("Sums by trainer", "ann")).toEqual(["ann", "1", "-1"]);
});

test("the model is that of the moment that the slider is dragged to", async () => {
  await open("Time travel");
  await page.getByText("Drag the slider to see the model as it was.").waitFor();
  const now = await cellsOf("Parameters at this moment", "w");
  expect([now[2], now[4], now[5], now[7]]).toEqual(["4", "0", "3", "0 %"]);
  const slider = page.getByRole("slider");
  await slider.focus();
  await page.keyboard.press("Home");
  const rebuilt = page.getByText("The model is rebuilt from the journals …");
  await rebuilt.waitFor();
  await rebuilt.waitFor({ state: "detached" }).catch(() => undefined);
  await page.getByText("There were no parameters.").waitFor();
});

test("hostile names stay text", async () => {
  await open("Parameters");
  await page.getByRole("button", { name: `show ${HOSTILE}` }).waitFor();
  expect(await page.locator("img").count()).toBe(0);
  expect(await page.title()).toBe("default – pserver");
});

test("tabs follow the arrow keys", async () => {
  await page.getByRole("tab", { name: "Overview" }).click();
  await page.keyboard.press("ArrowRight");
  const trainers = page.getByRole("tab", { name: "Trainers" });
  await expect
    .poll(() => trainers.getAttribute("aria-selected"), { timeout: HANG_MS })
    .toBe("true");
  const focused = page.locator("[role=tab]:focus");
  await expect.poll(() => focused.textContent(), { timeout: HANG_MS }).toBe("Trainers");
});

test("no view is wider than a narrow screen", async () => {
  await page.setViewportSize({ width: 420, height: 800 });
  for (const tab of TABS) {
    await open(tab);
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    expect(width, tab).toBeLessThanOrEqual(420);
  }
});

test("nothing comes from elsewhere, and nothing went wrong", () => {
  expect(asked.filter((url) => !url.startsWith(`${http}/`) && !url.startsWith("data:"))).toEqual(
    [],
  );
  expect(problems).toEqual([]);
});
