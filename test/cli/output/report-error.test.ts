// Proves how errors are told: text with a hint, or one line of JSON, each with the exit code of
// the table; and that the table maps every error code to a documented exit code.
import { expect, test } from "vitest";
import { makePaint } from "../../../src/cli/output/colors.ts";
import { EXIT, EXIT_CODES, EXIT_MEANINGS, reportError } from "../../../src/cli/report-error.ts";

import { ERROR_CODES, type ErrorCode, PserverError } from "../../../src/protocol/errors.ts";

const COMMANDS = [
  "up",
  "setup",
  "host",
  "run",
  "status",
  "ls",
  "get",
  "set",
  "save",
  "load",
  "doctor",
];

const plain = makePaint(false);

test("maps every error code to an exit code other than 0, and documents each of those", () => {
  expect(Object.keys(EXIT_CODES).sort()).toEqual(Object.keys(ERROR_CODES).sort());
  const documented = Object.keys(EXIT_MEANINGS).map(Number);
  expect(documented).toEqual(Object.values(EXIT));
  for (const exitCode of Object.values(EXIT_CODES)) {
    expect(documented).toContain(exitCode);
    expect(exitCode).not.toBe(EXIT.ok);
    // Wrong arguments are no error of the system.
    expect(exitCode).not.toBe(EXIT.badArguments);
  }
});

test.each([
  ["NO_BROKER", 2],
  ["NO_HOST", 2],
  ["UNKNOWN_PARAMETER", 3],
  ["BAD_PATH", 3],
  ["DENIED", 4],
  ["ABORTED", 130],
  ["DISK_FULL", 6],
  ["OUTCOME_UNKNOWN", 7],
  ["INTERNAL", 1],
] as const)("%s exits with %d", (code, exitCode) => {
  expect(
    reportError(new PserverError(code, "text"), { json: false, paint: plain, command: "status" })
      .exitCode,
  ).toBe(exitCode);
});

test("tells people the code, the message and what to do", () => {
  const error = new PserverError("NO_BROKER", "nobody at\n\u001b[2Jhome");
  expect(
    reportError(error, { json: false, paint: plain, command: "status" }).text.split("\n"),
  ).toEqual([
    "pserver: NO_BROKER: nobody at",
    "  \\x1b[2Jhome",
    'hint: "pserver up" starts one on this machine',
  ]);
});

test.each([...COMMANDS])("never tells who ran %s to run that", (command) => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    const { text } = reportError(new PserverError(code, "text"), {
      json: false,
      paint: plain,
      command: command,
    });
    expect(text).not.toContain(`"pserver ${command}"`);
  }
});

test("tells who starts a broker and has none how to get one", () => {
  const error = new PserverError("NO_BROKER", "no nats-server found");
  expect(reportError(error, { json: false, paint: plain, command: "up" }).text).toContain(
    'hint: "pserver setup" provides',
  );
  expect(reportError(error, { json: false, paint: plain, command: "ls" }).text).toContain(
    'hint: "pserver up" starts one',
  );
});

test("tells who rewinds a job and has no room for it how to make some, and others to wait", () => {
  const error = new PserverError("JOURNAL_FULL", "no room");
  const hint = (command: string): string =>
    reportError(error, { json: false, paint: plain, command }).text;
  expect(hint("rewind")).toMatch(/hint: .*--max-bytes.*--complete/);
  expect(hint("set")).toContain("hint: wait for a snapshot");
});

test("begins with the time in a log", () => {
  const error = new PserverError("CLOSED", "gone");
  const style = { paint: plain, command: "host", time: "2026-11-22T17:00:00.000Z" };
  expect(reportError(error, { ...style, json: false }).text).toBe(
    "2026-11-22T17:00:00.000Z pserver: CLOSED: gone",
  );
  expect(JSON.parse(reportError(error, { ...style, json: true }).text)).toEqual({
    time: "2026-11-22T17:00:00.000Z",
    error: { code: "CLOSED", message: "gone", details: {} },
  });
});

test("tells programs everything on one line", () => {
  const error = new PserverError("BAD_VALUE", "two\nlines", { received: 7 });
  const { text } = reportError(error, { json: true, paint: plain, command: "status" });
  expect(text).not.toContain("\n");
  expect(JSON.parse(text)).toEqual({
    error: { code: "BAD_VALUE", message: "two\nlines", details: { received: 7 } },
  });
});

test("tells foreign errors as defects", () => {
  const { text, exitCode } = reportError(new TypeError("x is not a function"), {
    json: false,
    paint: plain,
    command: "status",
  });
  expect(text).toContain("pserver: INTERNAL: x is not a function");
  expect(exitCode).toBe(EXIT.failure);
});

test("a certificate that is refused for another reason than its authority gets no hint", () => {
  const error = new PserverError("NO_BROKER", "text", { certificate: "CERT_HAS_EXPIRED" });
  const style = { json: false, paint: plain, command: "status" };
  expect(reportError(error, style).text).toBe("pserver: NO_BROKER: text");
});
