// Proves the shell program between launcher and trainer, with real shells and the waits of a test: what ends a
// trainer that listens to nothing, and that what it leaves behind goes with it.
import { existsSync } from "node:fs";
import { PassThrough } from "node:stream";
import { beforeEach, expect, test, vi } from "vitest";
import { GUARD, GuardedProcess, startLine } from "../../../src/cli/run/guarded-process.ts";

import { KeptTrainer } from "../../../src/cli/run/process-launchers.ts";
import { TrainerOutput } from "../../../src/cli/run/trainer-output.ts";
import { HANG_MS } from "../../support/limits.ts";
import { makeRunDirectory, type RunDirectory } from "../../support/run-command.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

/** Every shell that may be `sh` somewhere and is here. */
const SHELLS = ["/bin/dash", "/bin/bash", "/bin/ksh", "/bin/busybox"].filter((path) =>
  existsSync(path),
);

let directory: RunDirectory;
let stdout: PassThrough;
beforeEach(async () => {
  directory = await makeRunDirectory();
  stdout = new PassThrough();
  return () => directory.remove();
});

function guarded(shell: string, command: readonly string[]): GuardedProcess {
  const paint = (_rank: number, prefix: string): string => prefix;
  return GuardedProcess.start({
    program: shell.endsWith("busybox") ? [shell, "sh", "-c", GUARD] : [shell, "-c", GUARD],
    environment: { ...process.env, PIDS: `${directory.path}/pids` },
    startLine: startLine({ command, variables: {}, directory: directory.path }),
    rank: 0,
    output: new TrainerOutput({
      stdout,
      stderr: stdout,
      paint: { stdout: paint, stderr: paint },
      json: false,
      count: 1,
    }),
  });
}

const NOTE = 'echo $$ >"$PIDS/trainer-$$";';

test.each(SHELLS)("%s: the exit code is the trainer's", async (shell) => {
  expect(await guarded(shell, ["sh", "-c", "exit 0"]).ended).toBe(0);
  expect(await guarded(shell, ["sh", "-c", "exit 3"]).ended).toBe(3);
  expect(await guarded(shell, ["sh", "-c", "kill -TERM $$"]).ended).toBe(143);
  expect(await guarded(shell, ["/nowhere/x"]).ended).toBe(127);
});

test.each(SHELLS)("%s: SIGINT reaches the trainer, which may take its time", async (shell) => {
  const trainer = guarded(shell, [
    "sh",
    "-c",
    `trap 'echo caught; exit 4' INT; ${NOTE} while :; do sleep 0.1; done`,
  ]);
  await directory.untilNoted(1);
  trainer.signal("INT");
  expect(await trainer.ended).toBe(4);
  expect(String(stdout.read())).toContain("[0] caught\n");
  await directory.untilGone();
});

test.each(SHELLS)(
  "%s: a trainer that ignores all but SIGKILL is killed, with its children",
  async (shell) => {
    const told: string[] = [];
    const trainer = KeptTrainer.start({
      rank: 0,
      trainer: "stubborn",
      restartsMax: 3,
      onMessage: (text) => told.push(text),
      waitsMs: [100, 100, HANG_MS, HANG_MS],
      start: () =>
        guarded(shell, [
          "sh",
          "-c",
          `trap '' INT TERM; sh -c 'echo $$ >"$PIDS/child-$$"; while :; do sleep 1; done' & ${NOTE} while :; do sleep 1; done`,
        ]),
    });
    await directory.untilNoted(2);
    await trainer.stop();
    expect(await trainer.ended).toBeUndefined();
    expect(told).toEqual([]);
    await directory.untilGone();
  },
);

test.each(SHELLS)("%s: processes that a trainer leaves behind end with it", async (shell) => {
  const trainer = guarded(shell, [
    "sh",
    "-c",
    `sh -c 'trap "" TERM; echo $$ >"$PIDS/child-$$"; while :; do sleep 1; done' & while ! ls "$PIDS" | grep -q child; do sleep 0.05; done; exit 5`,
  ]);
  expect(await trainer.ended).toBe(5);
  await directory.untilGone();
});

test("output is passed on no faster than it is read, in whole lines", async () => {
  const slow = new PassThrough({ highWaterMark: 1024 });
  stdout = slow;
  const trainer = guarded("/bin/sh", [
    "sh",
    "-c",
    `${NOTE} head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last`,
  ]);
  await directory.untilNoted(1);
  // The trainer stands still while nobody reads.
  await vi.waitFor(() => expect(slow.readableLength).toBeGreaterThan(0), WAIT);
  expect(slow.readableLength).toBeLessThan(300_000);
  let bytes = 0;
  let text = "";
  slow.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    text = (text + String(chunk)).slice(-20);
  });
  expect(await trainer.ended).toBe(0);
  await vi.waitFor(() => expect(text.endsWith("[0] last\n")).toBe(true), WAIT);
  // A prefix and an end for each piece of 64 KiB.
  const pieces = Math.ceil(3_000_000 / 65_536);
  expect(bytes).toBe(3_000_000 + pieces * "[0] \n".length + "[0] last\n".length);
  await directory.untilGone();
});
