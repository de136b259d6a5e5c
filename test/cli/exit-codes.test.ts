// Proves the exit code of every error code, against the groups that the help of the command names: what
// a script tells apart by them must not move unnoticed. That commands really end with them is proved in
// test/e2e/cli-exits.test.ts.
import { expect, test } from "vitest";
import { makePaint } from "../../src/cli/output/colors.ts";
import { EXIT, EXIT_CODES, EXIT_MEANINGS, reportError } from "../../src/cli/report-error.ts";

import { ERROR_CODES, PserverError } from "../../src/protocol/errors.ts";

const GROUPS: Readonly<Record<number, readonly string[]>> = {
  2: [
    ...["NO_BROKER", "NO_ETCD", "NO_HOST", "NO_OWNER", "NOT_OWNER", "BUSY"],
    ...["NO_MEMORY", "JETSTREAM_UNAVAILABLE"],
  ],
  3: [
    ...["BAD_NAME", "BAD_DTYPE", "BAD_SHAPE", "BAD_LENGTH", "BAD_VALUE", "BAD_CONFIG", "BAD_INDEX"],
    ...[
      "NON_FINITE",
      "GUARDED",
      "NO_LEARNING_RATE",
      "EMPTY",
      "TOO_LARGE",
      "UNKNOWN_PARAMETER",
      "JOB_EXISTS",
    ],
    ...["BAD_PATH", "BAD_FILE", "MISSING_SHARD", "BAD_ARCHIVE", "GUARDED"],
  ],
  4: [
    ...["BAD_VERSION", "UNSUPPORTED", "STATIC", "UNKNOWN_RULES", "NO_JETSTREAM", "NO_TLS"],
    ...["BROKER_TOO_OLD", "PAYLOAD_TOO_SMALL", "DENIED"],
  ],
  6: ["IO", "DISK_FULL", "STORE_IN_USE"],
  7: ["TIMEOUT", "OUTCOME_UNKNOWN"],
  130: ["ABORTED"],
};

test("each error ends with the code of its group, every other one with 1", () => {
  const inGroup = new Map(
    Object.entries(GROUPS).flatMap(([exit, codes]) => codes.map((code) => [code, Number(exit)])),
  );
  const style = { json: false, paint: makePaint(false), command: "status" };
  for (const code of Object.keys(ERROR_CODES) as (keyof typeof ERROR_CODES)[]) {
    expect([code, EXIT_CODES[code]]).toEqual([code, inGroup.get(code) ?? 1]);
    const report = reportError(new PserverError(code, "m"), style);
    expect(report.exitCode).toBe(EXIT_CODES[code]);
  }
});

test("every exit code has a meaning of its own", () => {
  const codes = Object.values(EXIT);
  expect(
    Object.keys(EXIT_MEANINGS)
      .map(Number)
      .sort((a, b) => a - b),
  ).toEqual(codes);
  expect(new Set(Object.values(EXIT_MEANINGS)).size).toBe(codes.length);
  expect(codes).toEqual([0, 1, 2, 3, 4, 6, 7, 128, 130]);
});
