// Proves that the log of a broker is kept in its store directory, across starts, in a bounded space, and that a log that
// cannot be written stops nobody.
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { BrokerLog } from "../../src/broker/broker-log.ts";

function storeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "pserver-log-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("lines are there at once, and a later start adds to them", () => {
  const directory = storeDirectory();
  const log = new BrokerLog(directory);
  log.add("one");
  expect(readFileSync(log.path, "utf8")).toBe("one\n");
  new BrokerLog(directory).add("two");
  expect(readFileSync(join(directory, "broker.log"), "utf8")).toBe("one\ntwo\n");
  // What a broker complains about is nobody else's business.
  expect(statSync(log.path).mode & 0o777).toBe(0o600);
});

test("two files of a bounded size are kept, the newest lines in the one without a number", () => {
  const directory = storeDirectory();
  const log = new BrokerLog(directory, 100);
  for (let i = 0; i < 100; i++) log.add(`line ${i}`);
  const [older, newer] = [`${log.path}.1`, log.path].map((path) => readFileSync(path, "utf8"));
  const lines = `${older}${newer}`.trim().split("\n");
  expect(lines.at(-1)).toBe("line 99");
  expect(lines).toEqual(lines.map((_, i) => `line ${100 - lines.length + i}`));
  expect(`${older}${newer}`.length).toBeLessThan(220);
});

test("a directory that is gone, as a disk that is full, only loses lines", () => {
  const directory = storeDirectory();
  const log = new BrokerLog(directory);
  rmSync(directory, { recursive: true });
  log.add("lost");
  expect(statSync(log.path, { throwIfNoEntry: false })).toBeUndefined();
});
