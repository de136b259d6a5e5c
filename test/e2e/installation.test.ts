// Proves what a newcomer meets: the package is complete, with man pages, documents and licences, and TypeScript
// reads its types; an old Node.js is one line. An installed command finds the broker that was installed with it; one
// without any says how to get one, and `pserver setup` provides it, or names what to install. A script plays Go, but
// for one test, in which Go is really fetched and builds a broker that serves a trainer. What else a set-up does is in
// test/e2e/set-up-broker.test.ts.

import { execFile } from "node:child_process";
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
import { builtinModules } from "node:module";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { findBroker } from "../../src/broker/index.ts";
import { connect } from "../../src/client/index.ts";
import { type Finished, runProcess, start } from "../cli/spawn-command.ts";
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
  return runProcess(args, { main: installed.main, cwd: home, environment: environment() });
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
  const legion = await runProcess(["--help"], {
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

const execute = promisify(execFile);

/** The directory of the installed package. */
const root = (): string => join(dirname(installed.main), "..");

/** Files of a directory and of those in it, as paths from it. */
async function filesIn(directory: string, ending: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true });
  return names.filter((name) => name.endsWith(ending) && !name.includes("node_modules"));
}

describe("the package", () => {
  test("has every document and example that its sources name", async () => {
    const sources = await filesIn(join(root(), "src"), ".ts");
    const names = [...sources.map((name) => join("src", name)), "nats.conf", "nats-durable.conf"];
    const texts = await Promise.all(names.map((name) => readFile(join(root(), name), "utf8")));
    const paths = texts.flatMap(
      (text) => text.match(/\b(?:docs|examples)\/[\w/.-]*\w\.(?:md|conf|py|ts|c)\b/g) ?? [],
    );
    expect(paths).toContain("docs/reference/errors.md");
    expect([...new Set(paths)].filter((path) => !existsSync(join(root(), path)))).toEqual([]);
  });

  test("has the links that its documents have to others and to configurations", async () => {
    const documents = (await filesIn(join(root(), "docs"), ".md")).map((name) =>
      join("docs", name),
    );
    const broken: string[] = [];
    for (const document of documents) {
      const text = await readFile(join(root(), document), "utf8");
      for (const [, target = ""] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        const path = join(dirname(document), target);
        const isShipped = /^(?:docs|examples\/nats)\b/.test(path);
        if (isShipped && !existsSync(join(root(), path))) broken.push(`${document}: ${target}`);
      }
    }
    expect(documents.length).toBeGreaterThan(20);
    expect(broken).toEqual([]);
  });

  test("needs no other packages than those it depends on, and has the licences of those it contains", async () => {
    const manifest = JSON.parse(await readFile(join(root(), "package.json"), "utf8"));
    const known = new Set([...Object.keys(manifest.dependencies), ...builtinModules]);
    const scripts = await filesIn(join(root(), "dist"), ".js");
    const imported = new Set<string>();
    for (const name of scripts) {
      const text = await readFile(join(root(), "dist", name), "utf8");
      for (const [, from = ""] of text.matchAll(/^(?:import|export) [^;]*?"([^"]+)";$/gm))
        imported.add(from);
      for (const [, from = ""] of text.matchAll(/\bimport\("([^"]+)"\)/g)) imported.add(from);
    }
    const packages = [...imported]
      .filter((from) => !from.startsWith("."))
      .map((from) => /^(?:node:)?((?:@[^/]+\/)?[^/]+)/.exec(from)?.[1] ?? from);
    expect(packages).toContain("xstate");
    expect(packages.filter((name) => !known.has(name))).toEqual([]);
    const licenses = await readFile(join(root(), "dist", "licenses.txt"), "utf8");
    for (const name of ["transport-node", "nats-core", "nuid", "jetstream", "kv", "nkeys"]) {
      expect(licenses).toMatch(
        new RegExp(`^@nats-io/${name} \\d+\\.\\d+\\.\\d+\n\n.*Apache License`, "ms"),
      );
    }
    expect(licenses).toMatch(/^tweetnacl \d/m);
    const ofPage = await readFile(join(root(), "dist", "page", "licenses.txt"), "utf8");
    expect(ofPage).toMatch(/^uplot \d+\.\d+\.\d+\n\n.*MIT License/ms);
  });

  test("has types that need no other package than Node's", async () => {
    const modules = join(home, "node_modules");
    await mkdir(join(modules, "@types"), { recursive: true });
    await symlink(root(), join(modules, "nats-pserver"));
    await symlink(join(packageRoot(), "node_modules/@types/node"), join(modules, "@types/node"));
    await symlink(join(packageRoot(), "node_modules/undici-types"), join(modules, "undici-types"));
    await writeFile(
      join(home, "user.mts"),
      `import { connect } from "nats-pserver";
       import * as history from "nats-pserver/history";
       import * as protocol from "nats-pserver/protocol";
       const client = await connect({ job: "j", trainer: "t" });
       const session: number = client.session;
       console.log(session, history, protocol);`,
    );
    const tsc = join(packageRoot(), "node_modules/.bin/tsc");
    const flags = ["--strict", "--noEmit", "--module", "nodenext", "--target", "esnext"];
    const answer = await execute(
      tsc,
      [...flags, "--preserveSymlinks", "--types", "node", "user.mts"],
      {
        cwd: home,
      },
    ).catch((error: { stdout: string }) => error);
    expect(answer.stdout).toBe("");
  });

  test("installs a man page of each program, with all commands and flags that its help names", async () => {
    const read = (name: string): Promise<string> =>
      readFile(join(installed.prefix, "share/man/man1", `${name}.1`), "utf8");
    const page = (await read("pserver")).replaceAll("\\-", "-");
    const { stdout } = await runProcess(["completion", "fish"], { main: installed.main });
    const commands = [...stdout.matchAll(/ -a '?([a-z][a-z-]*)'? -d/g)].map(
      ([, name = ""]) => name,
    );
    for (const name of ["up", "run", "bisect", "what-if"])
      expect(page).toContain(`.SS "pserver ${name}"`);
    for (const name of commands) expect(page).toContain(name);
    for (const name of ["run", "up"]) {
      const help = await runProcess(["help", name], { main: installed.main });
      for (const [flag] of help.stdout.matchAll(/^ {2}(?:-\w, )?--[a-z-]+/gm))
        expect(page).toContain(flag);
    }
    expect(await read("legion")).toContain(".TH LEGION 1");
  });

  test.each(["pserver", "legion"])("%s says on an old Node.js which one it needs", async (name) => {
    const old = "data:text/javascript,Object.defineProperty(process,'version',{value:'v18.20.8'})";
    const program = join(root(), "dist", `${name}.js`);
    const ended = execute(process.execPath, ["--import", old, program, "--help"]);
    await expect(ended).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: `${name}: expected Node.js 20.19 or newer; received v18.20.8\n`,
    });
  });

  test("its programs run as they are installed, by their names", async () => {
    const bin = join(installed.prefix, "bin");
    const PATH = `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`;
    for (const name of ["pserver", "legion"]) {
      const { stdout } = await execute(name, ["--help"], { cwd: home, env: { PATH, HOME: home } });
      expect(stdout).toMatch(new RegExp(`^Usage: ${name} `));
    }
  });
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
    const { stdout } = await runProcess(["setup", "--json"], {
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
    const provided = await runProcess(["setup", "--json"], {
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
    const { code, stdout, stderr } = await runProcess(["setup"], {
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
        /BROKER_TOO_OLD: .*expected nats-server 2\.11\.2 or newer.*received 2\.9\.10\nhint: "pserver setup" provides/s,
      ),
    });
    const newer = join(home, "newer");
    await mkdir(newer);
    await writeFile(join(newer, "nats-server"), `#!${bin}/bash\necho v2.12.1\n`, { mode: 0o755 });
    const { stdout } = await runProcess(["setup", "--json"], {
      main: installed.main,
      environment: { ...environment(), PATH: `${bin}:${newer}` },
    });
    expect(JSON.parse(stdout)).toMatchObject({ version: "2.12.1", standing: "recommended" });
  });
});
