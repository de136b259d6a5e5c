// Takes pictures of the page on a small job that four trainers train: every view, wide and narrow, light and dark. After
// `make build`; needs Chromium, which scripts/setup-browser.sh provides.
//
//   node scripts/take-screenshots.mjs DIRECTORY           every view, into the directory
//   node scripts/take-screenshots.mjs --readme            the picture in the README

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("..", import.meta.url));
const { connect } = await import(join(root, "dist", "index.js"));

const README_PICTURE = join(root, "docs", "images", "page.png");
const VIEWS = ["Overview", "Trainers", "Charts", "Updates", "Parameters", "Time travel"];
const WIDTHS = [1400, 420];
const SCHEMES = ["light", "dark"];

/** Pause of a trainer after each step, and how long all train before the first picture, in milliseconds. */
const PAUSE_MS = 200;
const BEFORE_MS = 40_000;

/** Steps in which losses fall to a third. */
const DECAY_STEPS = 60;

const SHAPES = {
  "embedding.weight": [512, 32],
  "hidden.0.weight": [64, 32],
  "hidden.0.bias": [64],
  "hidden.1.weight": [64, 64],
  "hidden.1.bias": [64],
  "output.weight": [10, 64],
  "output.bias": [10],
};

/** The same numbers each time, so that pictures can be compared. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

function tensors(random, scale) {
  return Object.fromEntries(
    Object.entries(SHAPES).map(([name, shape]) => {
      const size = shape.reduce((product, each) => product * each, 1);
      const data = Float32Array.from({ length: size }, () => scale * (random() + random()));
      return [name, { dtype: "float32", shape, data }];
    }),
  );
}

async function startServer(store) {
  const main = join(root, "dist", "pserver.js");
  const args = ["up", "--port", "0", "--http", "0", "--store", store, "--shards", "4"];
  const server = spawn(
    process.execPath,
    [main, ...args, "--hosts", "2", "--job", "mnist", "--json"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = await once(createInterface({ input: server.stdout }), "line");
  return { server, ready: JSON.parse(line) };
}

async function initialize(options) {
  const client = await connect({ ...options, trainer: "trainer-1" });
  const values = tensors(randomNumbers(1), 0.1);
  if (await client.beginInit()) {
    for (const [name, tensor] of Object.entries(values)) {
      await client.initParam(name, tensor, { learningRate: 0.05 });
    }
    await client.finishInit();
  }
  return client;
}

async function train(client, number, signal) {
  const random = randomNumbers(100 + number);
  for (let step = 1; !signal.aborted; step++) {
    const progress = Math.exp(-step / DECAY_STEPS);
    const grads = tensors(random, 0.05 * progress + 0.005);
    await client.pullFull("output.bias");
    await client.sendGrads(grads);
    if (step % 2 === 0) {
      const loss = 0.18 + 2.1 * progress + 0.12 * (0.3 + progress) * random() + 0.02 * number;
      await client.note({ loss, step, accuracy: 0.97 - 0.8 * progress });
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS + 30 * number));
  }
}

async function openPage(browser, http, width, colorScheme) {
  const page = await browser.newPage({ viewport: { width, height: 860 }, colorScheme });
  page.setDefaultTimeout(300_000);
  await page.goto(http);
  await page.getByText("● live").waitFor();
  return page;
}

/** Waits until a view has nothing more to load. */
async function settle(page, view) {
  if (view === "Time travel") await page.getByText("Drag the slider").waitFor();
  if (view === "Charts") await page.getByRole("img", { name: /^loss by/ }).waitFor();
  if (view === "Parameters") {
    await page.getByRole("button", { name: "show hidden.0.weight" }).click();
    await page.getByText("The L2 norm, and the least").waitFor();
  }
  await page.waitForTimeout(1_500);
}

async function takeAll(browser, http, directory) {
  await mkdir(directory, { recursive: true });
  for (const width of WIDTHS) {
    for (const scheme of SCHEMES) {
      const page = await openPage(browser, http, width, scheme);
      for (const view of VIEWS) {
        await page.getByRole("tab", { name: view }).click();
        await settle(page, view);
        const name = `${view.toLowerCase().replace(" ", "-")}-${width}-${scheme}.png`;
        await page.screenshot({ path: join(directory, name), fullPage: view !== "Updates" });
      }
      await page.close();
    }
  }
}

async function takeForReadme(browser, http) {
  const page = await openPage(browser, http, 1280, "light");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.waitForTimeout(12_000);
  await page.screenshot({ path: README_PICTURE });
  await page.close();
}

const [target] = process.argv.slice(2);
if (target === undefined)
  throw new Error("usage: node scripts/take-screenshots.mjs DIRECTORY | --readme");
const home = await mkdtemp(join(tmpdir(), "pserver-screenshots-"));
const { server, ready } = await startServer(join(home, "store"));
try {
  const token = (await readFile(ready.tokenFile, "utf8")).trim();
  const options = { url: ready.url, token, job: "mnist" };
  const first = await initialize(options);
  const others = await Promise.all(
    [2, 3, 4].map((i) => connect({ ...options, trainer: `trainer-${i}` })),
  );
  const clients = [first, ...others];
  const enough = new AbortController();
  const training = Promise.all(clients.map((client, i) => train(client, i + 1, enough.signal)));
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  await new Promise((resolve) => setTimeout(resolve, BEFORE_MS));
  if (target === "--readme") await takeForReadme(browser, ready.http);
  else await takeAll(browser, ready.http, target);
  await browser.close();
  enough.abort();
  await training;
  for (const client of clients) await client.close();
} finally {
  server.kill("SIGTERM");
  await once(server, "close");
  await rm(home, { recursive: true, force: true });
}
