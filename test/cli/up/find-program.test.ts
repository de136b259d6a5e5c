// Proves whom `pserver up` offers to provide a broker: who can answer, and has none that may be used.
import { PassThrough } from "node:stream";
import { beforeEach, expect, test, vi } from "vitest";
import { Output } from "../../../src/cli/output/output.ts";
import { findProgram } from "../../../src/cli/up/local-server.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

const FOUND = { path: "/found/nats-server", version: "2.12.0" };
const MADE = { path: "/made/nats-server", version: "2.12.0" };

const broker = { findBroker: vi.fn(), setUpBroker: vi.fn() };

beforeEach(() => {
  broker.findBroker.mockReset().mockRejectedValue(new PserverError("NO_BROKER", "none here"));
  broker.setUpBroker.mockReset().mockResolvedValue(MADE);
});

/** Looks for a broker where `answer` is typed on a terminal, or nobody sits. */
async function find(
  answer: string | undefined,
  environment: Record<string, string> = {},
  json = false,
): Promise<{ found: unknown; asked: string }> {
  const stdin = Object.assign(new PassThrough(), { isTTY: answer !== undefined });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  if (answer !== undefined) stdin.write(`${answer}\n`);
  const { signal } = new AbortController();
  const context = { stdin, stdout, stderr, environment, signal, setExitCode: () => {} };
  const output = Output.open(context, environment, { json });
  const found = await findProgram(context, output, broker).catch((error) => error);
  return { found, asked: String(stderr.read() ?? "") };
}

test("a broker that is there is taken without a question", async () => {
  broker.findBroker.mockResolvedValue(FOUND);
  expect(await find("y")).toEqual({ found: FOUND, asked: "" });
});

test.each(["NO_BROKER", "BROKER_TOO_OLD"] as const)(
  "after %s one is provided on yes",
  async (code) => {
    broker.findBroker.mockRejectedValue(new PserverError(code, "none here"));
    const { found, asked } = await find("y");
    expect(found).toBe(MADE);
    expect(asked).toContain('none here. Provide one now, as "pserver setup" does?');
  },
);

test("nothing is provided on no", async () => {
  expect((await find("n")).found).toMatchObject({ code: "NO_BROKER" });
  expect(broker.setUpBroker).not.toHaveBeenCalled();
});

test.each([
  ["on no terminal", undefined, {}, false],
  ["where programs read", "y", {}, true],
  ["of a program that was named", "y", { PSERVER_NATS_SERVER: "/mine" }, false],
] as const)("nobody is asked %s", async (_, answer, environment, json) => {
  const { found, asked } = await find(answer, environment, json);
  expect([found, asked]).toMatchObject([{ code: "NO_BROKER" }, ""]);
});

test("another error is no reason to provide one", async () => {
  broker.findBroker.mockRejectedValue(new PserverError("ABORTED", "interrupted"));
  expect(await find("y")).toMatchObject({ found: { code: "ABORTED" }, asked: "" });
});
