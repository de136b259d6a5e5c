// Proves that ids of trainers and credentials may have any character that they have in TypeScript: with the compiled C
// library, on a real broker and host, every id of the shared vectors, and a user and a password with quotes.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { startFakeHost } from "../../support/fake-host.ts";
import { HANG_MS } from "../../support/limits.ts";

const VECTORS = join(import.meta.dirname, "..", "..", "vectors", "names.json");

let library: BuiltLibrary;
let probe: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  probe = await library.program("probe");
});

afterAll(() => library?.remove());

test("an id of the shared vectors joins, in C as in TypeScript", async () => {
  const { ids } = JSON.parse(await readFile(VECTORS, "utf8")) as {
    ids: { id: string; code?: string }[];
  };
  const job = await startServedJob();
  for (const { id } of ids.filter(({ code }) => code === undefined)) {
    const program = startProgram(probe, [job.broker.url, "j", id, `${HANG_MS}`]);
    expect(await program.line(0), JSON.stringify(id)).toMatch(/^OK/);
    program.finish();
    await program.end();
    const client = await connect({
      url: job.broker.url,
      job: "j",
      trainer: id,
      timeoutMs: HANG_MS,
    });
    expect(client.trainer).toBe(id);
    await client.close();
  }
});

test("a user and a password may have quotes and backslashes", async () => {
  const [user, password] = ['a"b', 'c\\d"e'];
  const users = `{ user: '${user}', password: '${password}' }`;
  const broker = await startTestBroker({ extraConfig: `authorization { users: [${users}] }` });
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j", user, pass: password });
  onTestFinished(() => host.close());
  const variables = { NATS_USER: user, NATS_PASSWORD: password };
  const program = startProgram(probe, [broker.url, "j", "c", `${HANG_MS}`], variables);
  expect(await program.line(0)).toMatch(/^OK/);
  program.finish();
  await program.end();
});
