// Proves what containers do at their start, in a directory with the files where an image has them: nats-server takes the
// configurations of compose.yaml and of the systemd unit; keys are made once, and each volume gets its own only; the
// health check ends with 0 for an answer of 200, and with 1 for any other or none.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { findBroker } from "../../../src/broker/index.ts";
import { readDeployed } from "../../deploy/deployed-files.ts";
import { TestAuth } from "../../support/auth.ts";

/** A directory that stands for `/`. */
let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "pserver-deploy-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** The text of a file of `deploy/` with its absolute paths below the root. */
function inRoot(...path: string[]): string {
  return readDeployed(...path).replaceAll(/(?<=["'=\s])\/(?=(?:etc|keys|data|var)\/)/g, `${root}/`);
}

describe("nats-server takes", () => {
  test.each([
    ["docker", "broker.conf"],
    ["systemd", "broker.conf"],
  ])("deploy/%s/%s", async (...path) => {
    const settings = join(root, "etc", "pserver");
    const modules = join(root, "usr", "local", "lib", "node_modules");
    await mkdir(settings, { recursive: true });
    await mkdir(modules, { recursive: true });
    await symlink(packageRoot(), join(modules, "nats-pserver"));
    const auth = await TestAuth.make("mnist", ["trainer-1"]);
    onTestFinished(() => auth.remove());
    await symlink(dirname(auth.directory.configFile), join(settings, "auth"));
    const file = join(settings, "broker.conf");
    await writeFile(file, inRoot(...path));
    const { path: program } = await findBroker();
    const environment = { ...process.env, PSERVER_NODE: "broker-1" };
    const checked = spawnSync(program, ["-c", file, "-t"], { encoding: "utf8", env: environment });
    expect([checked.status, checked.stderr]).toEqual([0, expect.stringContaining("is valid")]);
  });
});

describe("make-keys.sh", () => {
  /** Names of the files of a directory of the root, with those in its folders. */
  async function files(path: string): Promise<string[]> {
    const all = await readdir(join(root, path), { recursive: true, withFileTypes: true });
    return all
      .filter((each) => each.isFile())
      .map(({ name }) => name)
      .sort();
  }

  async function makeKeys(): Promise<void> {
    const bin = join(root, "bin");
    await mkdir(bin, { recursive: true });
    const program = join(packageRoot(), "dist", "pserver.js");
    await writeFile(
      join(bin, "pserver"),
      `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`,
    );
    // Only root may give files away.
    await writeFile(join(bin, "chown"), `#!/bin/sh\nprintf '%s\\n' "$*" >> "${root}/owners"\n`);
    for (const name of ["pserver", "chown"]) await chmod(join(bin, name), 0o755);
    for (const path of ["etc/pserver/auth", "keys/host", "keys/trainer", "keys/metrics"]) {
      await mkdir(join(root, path), { recursive: true });
    }
    const made = spawnSync("/bin/sh", ["-c", inRoot("docker", "make-keys.sh")], {
      encoding: "utf8",
      env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, PSERVER_JOB: "digits" },
    });
    expect([made.status, made.stderr]).toEqual([0, ""]);
  }

  test("gives each volume its own keys only", async () => {
    await makeKeys();
    expect(await files("keys/host")).toEqual(["answers.nk", "ca.pem", "host.nk", "token"]);
    expect(await files("keys/trainer")).toEqual(["ca.pem", "trainer-1.nk"]);
    expect(await files("keys/metrics")).toEqual(["token"]);
    expect(await readFile(join(root, "keys/metrics/token"), "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
    const owners = await readFile(join(root, "owners"), "utf8");
    for (const path of ["etc/pserver/auth", "keys/host", "keys/trainer"]) {
      expect(owners).toContain(join(root, path));
    }
  });

  test("keeps them at the next start, and makes them anew after one that was interrupted", async () => {
    const key = () => readFile(join(root, "keys/host/host.nk"), "utf8");
    const token = () => readFile(join(root, "keys/host/token"), "utf8");
    await makeKeys();
    const [made, madeToken] = [await key(), await token()];
    await makeKeys();
    expect([await key(), await token()]).toEqual([made, madeToken]);
    await rm(join(root, "etc/pserver/auth/auth.json"));
    await makeKeys();
    expect(await key()).not.toBe(made);
    expect(await token()).toBe(madeToken);
  });
});

describe("the health check of the image", () => {
  const [, words = "[]"] =
    /^HEALTHCHECK .*\\\n +CMD (\[.+\])$/m.exec(readDeployed("docker", "Dockerfile")) ?? [];
  const [program = "", ...args] = JSON.parse(words) as string[];

  /** How it ends when it asks this address. */
  async function check(url: string): Promise<number> {
    const child = spawn(program, args, { env: { ...process.env, HEALTH_URL: url } });
    const [code] = await once(child, "close");
    return code;
  }

  test.each([
    [200, 0],
    [503, 1],
  ])("an answer of %i: %i", async (status, code) => {
    const server = createServer((_request, response) => response.writeHead(status).end());
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await check(`http://127.0.0.1:${port}/healthz`)).toBe(code);
    server.close();
    await once(server, "close");
    expect(await check(`http://127.0.0.1:${port}/healthz`)).toBe(1);
  });
});
