// Proves that the end of one host is reported, that the end of the last one ends the command with
// its reason, and that hosts that are stopped on purpose are neither.
import { expect, test } from "vitest";
import { type RunningHost, RunningHosts } from "../../../src/cli/up/kept-processes.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

function fakeHost(stopFails = false): RunningHost & { die(reason: PserverError): void } {
  let end: (reason: PserverError | undefined) => void = () => {};
  const stopped = new Promise<PserverError | undefined>((resolve) => {
    end = resolve;
  });
  const stop = async (): Promise<void> => {
    end(undefined);
    if (stopFails) throw new PserverError("TIMEOUT", "it hung");
  };
  return { stopped, stop, die: end };
}

test("reports the end of one, and the reason of the last", async () => {
  const gone: unknown[] = [];
  const hosts = new RunningHosts((name, reason) => gone.push([name, reason?.code]));
  const [a, b] = [fakeHost(), fakeHost()];
  hosts.add("a", a);
  hosts.add("b", b);
  a.die(new PserverError("JOURNAL_LOST", "lost"));
  await a.stopped;
  b.die(new PserverError("JOURNAL_DAMAGED", "damaged"));
  expect(await hosts.allGone).toMatchObject({ code: "JOURNAL_DAMAGED" });
  expect(gone).toEqual([["a", "JOURNAL_LOST"]]);
});

test("stops all, whatever fails, and reports only that", async () => {
  const gone: string[] = [];
  const hosts = new RunningHosts((name) => gone.push(name));
  const fakes = [fakeHost(), fakeHost(true), fakeHost()];
  for (const [i, host] of fakes.entries()) hosts.add(String(i), host);
  const errors = await hosts.stop();
  expect(errors.map(({ code }) => code)).toEqual(["TIMEOUT"]);
  await Promise.all(fakes.map(({ stopped }) => stopped));
  expect(gone).toEqual([]);
  expect(await hosts.stop()).toEqual([]);
});
