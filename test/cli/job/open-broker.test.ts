// Proves how long a command waits for the broker, whatever its --timeout is, and under which id it appears.
import { hostname } from "node:os";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { CliContext } from "../../../src/cli/context.ts";
import { adminConnection, commandId, connectTimeoutMsOf } from "../../../src/cli/open-job.ts";
import { ID_BYTES_MAX } from "../../../src/protocol/limits.ts";

const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];

function contextWith(environment: CliContext["environment"]): CliContext {
  const { signal } = new AbortController();
  return { stdin, stdout, stderr, environment, signal, setExitCode: () => {} };
}

test.each([
  [{}, 3_600_000, 5_000],
  [{}, 5_001, 5_000],
  [{}, 700, 700],
  [{ NATS_TIMEOUT: "20s" }, 3_600_000, 20_000],
  [{ NATS_TIMEOUT: "20s" }, 700, 700],
  [{ NATS_TIMEOUT: "2s" }, 3_600_000, 5_000],
])(
  "in environment %j with a --timeout of %d ms the broker has %d ms",
  (environment, timeout, ms) => {
    const flags = { job: "j", timeout };
    expect(connectTimeoutMsOf(contextWith(environment), flags)).toBe(ms);
    expect(adminConnection(contextWith(environment), flags).connectTimeoutMs).toBe(ms);
  },
);

test("a connection has the job, the flags, the environment and the interrupt of its command", () => {
  const context = contextWith({ NATS_USER: "u" });
  const flags = { job: "mnist", timeout: 700, url: "nats://h:1", tlsca: "ca.pem" };
  const { environment, signal } = context;
  expect(adminConnection(context, flags)).toEqual({
    ...{ job: "mnist", environment, signal, connectTimeoutMs: 700 },
    broker: { url: "nats://h:1", tlsCa: "ca.pem" },
  });
});

test("the id of a command names machine and process", () => {
  expect(commandId()).toBe(commandId(hostname()));
  expect(commandId("node7.lab_a")).toBe(`cli-node7-lab-a-${process.pid}`);
});

test("a long name of the machine is cut in the id of a command, and the process is not", () => {
  const id = commandId("m".repeat(ID_BYTES_MAX));
  expect(id).toHaveLength(ID_BYTES_MAX);
  expect(id).toMatch(new RegExp(`^cli-m+-${process.pid}$`));
});
