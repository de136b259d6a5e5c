// Proves that `make docs` makes every page: one for each document, one of all commands, and those of each call of
// the packages for TypeScript and Python. A warning of TypeDoc ends it. Takes some 20 s of processor time.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import * as client from "../../src/client/index.ts";
import { HANG_MS } from "../support/limits.ts";

let directory = "";
const page = (path: string) => readFile(join(directory, path), "utf8");

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-docs-"));
  await promisify(execFile)(join(packageRoot(), "scripts", "make-docs.sh"), [directory]);
}, HANG_MS);

afterAll(() => rm(directory, { recursive: true, force: true }));

test("has a page of every document", async () => {
  const documents = await readdir(join(packageRoot(), "docs"), { recursive: true });
  const expected = documents
    .filter((path) => path.endsWith(".md"))
    .map((path) => `docs_${path.slice(0, -".md".length).replaceAll("/", "_")}.html`);
  const made = await readdir(join(directory, "documents"));
  expect(expected.length).toBeGreaterThan(20);
  expect(expected.filter((name) => !made.includes(name))).toEqual([]);
});

test("has a page of all commands, with their options", async () => {
  const text = await page("documents/Commands.html");
  for (const title of ["pserver up", "pserver what-if", "legion"]) expect(text).toContain(title);
  for (const option of ["--durable", "--torch-env", "--instances"]) expect(text).toContain(option);
});

test("has every call of the client", async () => {
  const made = (await readdir(directory, { recursive: true })).join("\n");
  const names = Object.keys(client);
  expect(names.length).toBeGreaterThan(3);
  expect(names.filter((name) => !made.includes(`.${name}.html`))).toEqual([]);
  const calls = await page("interfaces/client.Client.html");
  for (const call of ["sendgrads", "getparams", "savemodel"])
    expect(calls).toContain(`id="${call}"`);
});

test("has every call of the Python packages", async () => {
  const text = await page("python/pserver.html");
  for (const call of ["Client.send_grads", "Client.get_params", "connect"])
    expect(text).toContain(`id="${call}"`);
  expect(await page("python/pserver/aio.html")).toContain('id="AsyncClient.get_params"');
  expect(await page("python/pserver/torch.html")).toContain('id="DiLoCo"');
  expect(await page("python/legion.html")).toContain('id="Client.push_as_part"');
});
