// Proves what a newcomer meets: an installed command finds the broker that was installed with it; one
// without any says how to get one, and `pserver setup` provides it, or names what to install. A script plays Go, but
// for one test, in which Go is really fetched and builds a broker that serves a trainer. What else a set-up does is in
// test/e2e/set-up-broker.test.ts.

import { existsSync } from "node:fs";
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findBroker } from "../../src/broker/index.ts";
import { connect } from "../../src/client/index.ts";
import { type Finished, run, start } from "../cli/spawn-command.ts";
import { findPython } from "../support/find-python.ts";
import { type InstalledCommand, installCommand } from "../support/installed-command.ts";
import { HANG_MS } from "../support/limits.ts";

/** What the scripts call; no Go, broker or Python is among them. */
const TOOLS = ["bash", "dirname", "mkdir", "mktemp", "mv", "rm", "tail", "timeout"];

const SYSTEM_BROKER = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"].some((each) =>
  existsSync(join(each, "nats-server")),
);

let installed: InstalledCommand;
let home: string;
let bin: string;
/** A broker that works, whatever its version. */
let broker: string;

beforeAll(async () => {
  broker = (await findBroker()).path;
  installed = await installCommand();
});
afterAll(() => installed.remove());

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-home-"));
  bin = join(home, "bin");
  await mkdir(bin);
  for (const tool of TOOLS) {
    const path = ["/usr/bin", "/bin"]
      .map((each) => join(each, tool))
      .find((each) => existsSync(each));
    if (path !== undefined) await symlink(path, join(bin, tool));
  }
  return () => rm(home, { recursive: true, force: true });
});

/** Runs the installed command where nothing else of this machine is found. */
function pserver(...args: string[]): Promise<Finished> {
  return run(args, { main: installed.main, cwd: home, environment: environment() });
}

function environment(): Record<string, string> {
  return { PATH: bin, HOME: home, PSERVER_NATS_SERVER: "" };
}

async function program(name: string, lines: string): Promise<string> {
  const path = join(bin, name);
  await writeFile(path, `#!${bin}/bash\n${lines}\n`, { mode: 0o755 });
  return path;
}

test("make install takes the broker of set-up along, and up starts it", async () => {
  expect((await readFile(installed.broker)).equals(await readFile(broker))).toBe(true);
  expect(JSON.parse((await pserver("setup", "--json")).stdout)).toMatchObject({
    path: installed.broker,
  });
  const legion = await run(["--help"], {
    main: join(installed.prefix, "bin", "legion"),
    cwd: home,
  });
  expect([legion.code, legion.stdout.split("\n")[0]]).toEqual([
    0,
    "Usage: legion [options] <script>",
  ]);
  const up = start(["up", "--port", "0", "--shards", "1", "--json"], {
    main: join(installed.prefix, "bin", "pserver"),
    cwd: home,
    environment: environment(),
  });
  expect(JSON.parse(await up.firstLine)).toMatchObject({ ready: true });
  up.child.kill("SIGTERM");
  expect(await up.finished).toMatchObject({ code: 0 });
});

describe.skipIf(SYSTEM_BROKER)("without a broker", () => {
  let mine: string;
  beforeEach(async () => {
    mine = join(home, ".local", "share", "nats-pserver", "bin", "nats-server");
    await rm(installed.broker, { force: true });
    return () => copyFile(broker, installed.broker);
  });

  test("up says where it looked and what provides one", async () => {
    const { code, stdout, stderr } = await pserver("up", "--port", "0");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(
      `NO_BROKER: no nats-server found in PSERVER_NATS_SERVER, ${join(mine, "..")} or PATH`,
    );
    expect(stderr).toContain('hint: "pserver setup" provides');
  });

  test("setup builds one with Go for this user, and finds it from then on", async () => {
    await symlink("/bin/cp", join(bin, "cp"));
    await program(
      "go",
      `if [ "$1" = version ]; then echo go version go1.26; exit; fi
       echo "$@" >${home}/called; cp ${broker} "$GOBIN/nats-server"`,
    );
    const first = await pserver("setup", "--json");
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(first.stdout).path).toBe(mine);
    expect(await readFile(join(home, "called"), "utf8")).toMatch(
      /^install github\.com\/nats-io\/nats-server\/v2@v2\.12\.\d+\n$/,
    );
    await rm(join(bin, "go"));
    expect(JSON.parse((await pserver("setup", "--json")).stdout).path).toBe(mine);
  });

  test("setup puts it where XDG_DATA_HOME says", async () => {
    await symlink("/bin/cp", join(bin, "cp"));
    await program(
      "go",
      `if [ "$1" = version ]; then echo go version go1.26; exit; fi
       cp ${broker} "$GOBIN/nats-server"`,
    );
    const data = join(home, "data");
    const { stdout } = await run(["setup", "--json"], {
      main: installed.main,
      environment: { ...environment(), XDG_DATA_HOME: data },
    });
    expect(JSON.parse(stdout).path).toBe(join(data, "nats-pserver", "bin", "nats-server"));
  });

  test("setup fetches Go, and the broker that it builds serves a trainer", async () => {
    // Of this machine it gets a Python, and the caches of Go, which keep what they hold by its checksum.
    const given = {
      PSERVER_PYTHON: await findPython("venv", "ensurepip"),
      GOMODCACHE: process.env["GOMODCACHE"] ?? join(homedir(), "go", "pkg", "mod"),
      GOCACHE: process.env["GOCACHE"] ?? join(homedir(), ".cache", "go-build"),
    };
    const provided = await run(["setup", "--json"], {
      main: installed.main,
      cwd: home,
      environment: { ...environment(), ...given },
    });
    expect(provided).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(provided.stdout)).toEqual({
      path: mine,
      version: expect.stringMatching(/^2\.12\.\d+$/),
      standing: "recommended",
    });
    expect(await readdir(join(mine, "..", ".."))).toEqual(["bin", "broker.log"]);

    const up = start(["up", "--port", "0", "--shards", "1", "--json"], {
      main: installed.main,
      cwd: home,
      environment: environment(),
    });
    const { url, job } = JSON.parse(await up.firstLine);
    const trainer = await connect({ url, job, timeoutMs: HANG_MS });
    await trainer.createIfNotAlreadyCreated("sum", Float32Array.of(1, 2));
    await trainer.pushFull("sum", Float32Array.of(10, 20), 1, 1);
    expect((await trainer.getParams(["sum"]))[0]?.data).toEqual(Float32Array.of(11, 22));
    await trainer.close();
    up.child.kill("SIGTERM");
    expect(await up.finished).toMatchObject({ code: 0 });
  });

  test("setup says what to install where nothing can provide one", async () => {
    const { code, stdout, stderr } = await run(["setup"], {
      main: installed.main,
      cwd: home,
      environment: { ...environment(), PSERVER_PYTHON: join(home, "none") },
    });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(
      /NO_BROKER: no broker: install Go 1\.25 or newer .*\(on Debian python3-venv\).* or put nats-server 2\.12/,
    );
    expect(stderr).toContain("that failed: there is no CPython with venv");
    expect(stderr).not.toContain("pserver setup");
    expect(existsSync(mine)).toBe(false);
  });

  test("setup says what Go says where it cannot build", async () => {
    await program(
      "go",
      `if [ "$1" = version ]; then echo go version go1.26; exit; fi
       echo "no network today" >&2; exit 1`,
    );
    const { code, stderr } = await pserver("setup");
    expect(code).toBe(2);
    expect(stderr).toContain("that failed: no network today");
  });

  test("up refuses an old one, and takes a newer one behind it", async () => {
    await program("nats-server", "echo nats-server: v2.9.10");
    expect(await pserver("up")).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /BROKER_TOO_OLD: .*expected nats-server 2\.10\.28 or newer.*received 2\.9\.10\nhint: "pserver setup" provides/s,
      ),
    });
    const newer = join(home, "newer");
    await mkdir(newer);
    await writeFile(join(newer, "nats-server"), `#!${bin}/bash\necho v2.12.1\n`, { mode: 0o755 });
    const { stdout } = await run(["setup", "--json"], {
      main: installed.main,
      environment: { ...environment(), PATH: `${bin}:${newer}` },
    });
    expect(JSON.parse(stdout)).toMatchObject({ version: "2.12.1", standing: "recommended" });
  });
});
