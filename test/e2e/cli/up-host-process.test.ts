// Proves what `pserver up` learns of a host in a process of its own: its id, its messages and why it has
// ended; and that a stop waits for its end, with SIGKILL where SIGTERM does nothing. Scripts play hosts.
import { ChildProcess } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type HostProcess, startHostProcess } from "../../../src/cli/up/kept-processes.ts";
import { withoutConnection } from "../../../src/cli/up/local-server.ts";
import { identifyProcess } from "../../../src/system/process-identity.ts";
import { signalProcess } from "../../support/signals.ts";

const READY = `echo '{"ready":true,"id":"h1"}'`;

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-host-process-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A player of `pserver`, and the messages that come from it. */
async function play(lines: string): Promise<HostProcess & { readonly messages: string[] }> {
  const path = join(home, "pserver");
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
  const messages: string[] = [];
  const host = startHostProcess({
    command: [path, "first"],
    args: ["--job", "j"],
    environment: { PATH: process.env["PATH"], MARK: "given" },
    onMessage: (text) => messages.push(text),
    onReporting: () => undefined,
  });
  onTestFinished(() => {
    if (identifyProcess(host.pid) !== undefined) signalProcess(host.pid, "SIGKILL");
  });
  return { ...host, messages };
}

test("it is started as a host with JSON and its environment, and says its id once it serves", async () => {
  const host = await play(
    `echo "$* $MARK" >&2; echo '{"other":1}'; echo '{"ready":true,"id":"h1"}'; exec sleep 600`,
  );
  expect(await host.ready).toBe("h1");
  await vi.waitFor(() => expect(host.messages).toEqual(["first host --job j --json given"]));
  await host.stop();
  expect(await host.stopped).toBeUndefined();
  expect(identifyProcess(host.pid)).toBeUndefined();
  // Does nothing once it has ended.
  await host.stop();
});

test("its warnings are messages, and the error that it tells is why it has ended", async () => {
  const host = await play(
    `echo '{"warning":"slow disk"}' >&2; echo '{"error":{"code":"JOB_DAMAGED","message":"odd"}}' >&2; exit 1`,
  );
  await expect(host.ready).rejects.toMatchObject({ code: "JOB_DAMAGED", message: "odd" });
  expect(await host.stopped).toMatchObject({ code: "JOB_DAMAGED" });
  expect(host.messages).toEqual(["slow disk"]);
});

test.each([
  ["exit 3", "the host process ended with exit code 3"],
  ["kill -KILL $$", "the host process ended by SIGKILL"],
])(
  "one that serves and does '%s' without a word is told as what happened",
  async (end, message) => {
    const host = await play(`${READY}; ${end}`);
    expect(await host.stopped).toMatchObject({ code: "CLOSED", message });
  },
);

test("a program that cannot be run is named", async () => {
  const command = [join(home, "none")] as const;
  const host = startHostProcess({
    command,
    args: [],
    environment: {},
    onMessage: () => {},
    onReporting: () => undefined,
  });
  const error = { code: "IO", message: expect.stringContaining(`cannot run ${command[0]}`) };
  await expect(host.ready).rejects.toMatchObject(error);
  expect(await host.stopped).toMatchObject(error);
  await host.stop();
});

test("one that is stopped while it starts is not ready, and has no error of its own", async () => {
  const host = await play(`echo '{"warning":"starting"}' >&2; exec sleep 600`);
  await vi.waitFor(() => expect(host.messages).toEqual(["starting"]));
  await host.stop();
  await expect(host.ready).rejects.toMatchObject({ code: "ABORTED" });
  expect(await host.stopped).toBeUndefined();
});

test("one that ignores SIGTERM is killed after 20 s", async () => {
  const host = await play(`trap "" TERM; ${READY}; while :; do sleep 1; done`);
  await host.ready;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const sent = vi.spyOn(ChildProcess.prototype, "kill");
  onTestFinished(() => sent.mockRestore());
  const stopping = host.stop();
  await vi.advanceTimersByTimeAsync(19_999);
  expect(sent.mock.calls).toEqual([["SIGTERM"]]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent.mock.calls).toEqual([["SIGTERM"], ["SIGKILL"]]);
  await stopping;
  expect(identifyProcess(host.pid)).toBeUndefined();
});

test("a host gets no address and no credentials of another broker", () => {
  const environment = { NATS_URL: "nats://h", NATS_USER: "u", PSERVER_URL: "nats://h" };
  expect(withoutConnection({ ...environment, PSERVER_JOB: "j", PATH: "/bin" })).toEqual({
    PSERVER_JOB: "j",
    PATH: "/bin",
  });
});
