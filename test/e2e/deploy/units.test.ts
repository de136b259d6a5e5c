// Proves that systemd takes the units, and that they keep their processes from what these do not need.
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDeployed } from "../../deploy/deployed-files.ts";

const UNITS = ["pserver-broker.service", "pserver-host@.service"];

/** The most exposure that systemd may see, in tenths: 0 is none. */
const EXPOSURE_MAX = 20;

const version = spawnSync("systemd-analyze", ["--version"], { encoding: "utf8" }).stdout ?? "";
/** With --offline since systemd 250. */
const hasSystemd = Number(/^systemd (\d+)/.exec(version)?.[1] ?? 0) >= 250;
const reason = hasSystemd ? "" : " (left out: there is no systemd-analyze of systemd 250 or newer)";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-units-"));
  for (const name of UNITS) {
    // systemd looks for the programs, which are not installed here.
    const text = readDeployed("systemd", name).replace(
      /^ExecStart=\S+/m,
      `ExecStart=${process.execPath}`,
    );
    await writeFile(join(directory, name), text);
  }
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function analyze(...args: string[]): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, {
    encoding: "utf8",
    cwd: directory,
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${directory}:` },
  });
  const lines = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("pserver"));
  return { code: status, said: lines.join("\n") };
}

describe.skipIf(!hasSystemd)(`systemd-analyze${reason}`, () => {
  test.each(UNITS)("takes %s without a remark", (name) => {
    expect(analyze("verify", "--man=no", name)).toEqual({ code: 0, said: "" });
  });

  test("remarks on a setting that there is not", async () => {
    const name = "pserver-wrong.service";
    const text = readDeployed("systemd", "pserver-broker.service").replace(
      "ProtectHome",
      "ProtectHomes",
    );
    await writeFile(
      join(directory, name),
      text.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`),
    );
    expect(analyze("verify", "--man=no", name).said).toContain("ProtectHomes");
  });

  test.each(UNITS)("finds little that %s could do besides", (name) => {
    const file = name.replace("@.", "@mnist.");
    const { code, said } = analyze(
      ...["security", "--offline=true", `--threshold=${EXPOSURE_MAX}`, "--no-pager", file],
    );
    expect([code, said]).toEqual([0, expect.stringContaining("Overall exposure level")]);
  });
});
