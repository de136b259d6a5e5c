// Proves where `connect` gets the job and the trainer's id from when its caller names none; needs no broker.
import { expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";

/** Nobody listens there. */
const PSERVER_URL = "nats://127.0.0.1:1";
const failure = async (...given: Parameters<typeof connect>) =>
  await connect(...given).then(
    () => undefined,
    (error: unknown) => error,
  );

test("the job is that of the environment, which is checked like an argument", async () => {
  const error = await failure(undefined, { PSERVER_URL, PSERVER_JOB: "with space" });
  expect(error).toMatchObject({ code: "BAD_NAME" });
  expect(String(error)).toContain("with space");
});

test("the trainer is that of the environment", async () => {
  const error = await failure({}, { PSERVER_URL, PSERVER_TRAINER: "x".repeat(65) });
  expect(error).toMatchObject({ code: "BAD_NAME" });
});

test("arguments come before the environment, and empty variables count as none", async () => {
  const options = { job: "mine", trainer: "me", timeoutMs: 1 };
  const wrong = { PSERVER_URL, PSERVER_JOB: "with space", PSERVER_TRAINER: "x".repeat(65) };
  expect(await failure(options, wrong)).toMatchObject({ code: "NO_BROKER" });
  const empty = { PSERVER_URL, PSERVER_JOB: "", PSERVER_TRAINER: "" };
  expect(await failure({ timeoutMs: 1 }, empty)).toMatchObject({ code: "NO_BROKER" });
});
