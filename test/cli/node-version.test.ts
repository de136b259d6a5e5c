// Proves that the programs say in one line which Node.js they need, and need the one that package.json names.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { checkNodeVersion } from "../../src/cli/node-version.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** What a program prints and its exit code with a Node.js of this version; undefined if it goes on. */
function refusal(version: string): { text: string; code: unknown } | undefined {
  const written: string[] = [];
  const stderr = { write: (text: string) => written.push(text) };
  let code: unknown;
  vi.stubGlobal("process", {
    version,
    stderr,
    exit: (given: unknown) => {
      code = given;
    },
  });
  checkNodeVersion("pserver");
  vi.unstubAllGlobals();
  return code === undefined ? undefined : { text: written.join(""), code };
}

test.each(["v20.18.3", "v18.20.4", "v4.9.1"])("%s is refused", (version) => {
  expect(refusal(version)).toEqual({
    text: `pserver: expected Node.js 20.19 or newer; received ${version}\n`,
    code: 1,
  });
});

test.each(["v20.19.0", "v20.20.2", "v22.0.0", "v26.1.0-nightly"])("%s is enough", (version) => {
  expect(refusal(version)).toBeUndefined();
});

test("package managers are told the same", () => {
  const { engines } = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8"));
  expect(engines).toEqual({ node: ">=20.19" });
});
