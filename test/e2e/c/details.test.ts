// Proves that the C library tells what the TypeScript client does beside a status: the details of errors, found
// here or by a host, as JSON; versions, the client, parameters and saved models in full. That options of
// calls do what they say, names hold a NUL, and a child after a fork leaves its parent's client alone. Under
// address and undefined behaviour sanitizers.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureError, type PserverError } from "../../../src/protocol/index.ts";
import { runProgram } from "../../c/running-program.ts";
import { startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";

let library: BuiltLibrary;
let models: string;

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-models-"));
  library = await BuiltLibrary.build(SANITIZED);
});

afterAll(async () => {
  await library?.remove();
  await rm(models, { recursive: true, force: true });
});

/** The error of a call of the TypeScript client. */
async function errorOf(call: Promise<unknown>): Promise<PserverError> {
  return await call.then(
    () => expect.fail("the call succeeded"),
    (error: unknown) => ensureError(error),
  );
}

test("tells details as the TypeScript client does", async () => {
  const job = await startServedJob({ modelDirectory: models });
  const output = await runProgram(await library.program("details"), [job.broker.url, job.job]);
  const lines = output.trim().split("\n");
  const config = lines.find((line) => line.startsWith("config "));
  const told = lines
    .filter((line) => line !== config)
    .map((line) => /^(\w+) (.*)$/.exec(line) ?? expect.fail(line))
    .map(([, code, details]) => ({ code, details: JSON.parse(details ?? "") as object }));

  const client = await job.trainer("ts");
  const [floats, w] = [Float32Array.of(1, 2, 3, 4, 5, 6), "w"];
  const odd = 'quote" \0 ä';
  const shaped = { dtype: "float32", shape: [3, 2], data: floats } as const;
  const errors = [
    await errorOf(client.setParams({ w: shaped })),
    await errorOf(client.pullPart(w, [[-3], [0]])),
    await errorOf(client.setParams({ w: Float32Array.of(0, 0, Number.NaN, 0, 0, 0) })),
    await errorOf(client.setParams({ w: new Float64Array(6) })),
    await errorOf(client.getParams([odd])),
    await errorOf(client.saveModel("../x")),
  ];
  for (const { code, details } of errors) {
    expect(told.find((one) => one.code === code)?.details).toEqual(details);
  }
  // A bare array is of no length in TypeScript, but of a wrong shape.
  expect(told[0]).toEqual({
    code: "BAD_LENGTH",
    details: { parameter: "w", expected: 24, received: 20 },
  });
  const byCode = new Map(told.map(({ code, details }) => [code, details]));
  expect(byCode.get("BAD_NAME")).toEqual({
    expected: "well-formed text that is not empty",
    received: `"\ufffd"`,
  });
  expect(byCode.get("BAD_CONFIG")).toMatchObject({ received: expect.anything() });
  expect(byCode.get("TIMEOUT")).toMatchObject({ timeoutMs: 1 });

  const [, listed] = await client.listParams();
  expect(JSON.parse((config ?? "").slice("config ".length))).toEqual(listed?.config);
  const pulled = await client.pullFull("with\0NUL");
  expect(pulled.data).toEqual(floats);
});
