// Proves that the age of what released wheels carry is looked at: `make check` ends with an error once the release of
// Debian that it comes from gets no more security fixes.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const SCRIPT = join(import.meta.dirname, "../../scripts/release/build-wheel.sh");

function checkAge(day: string): { readonly code: number | null; readonly said: string } {
  const { status, stderr } = spawnSync(SCRIPT, ["--check-age", day], { encoding: "utf8" });
  return { code: status, said: stderr };
}

test("a release that gets fixes passes on its last day", () => {
  expect(checkAge("2028-06-30")).toEqual({ code: 0, said: "" });
});

test("one that gets none any more is named the day after", () => {
  const { code, said } = checkAge("2028-07-01");
  expect(code).toBe(1);
  expect(said).toContain("Debian bookworm, which gets security fixes until 2028-06-30");
});
