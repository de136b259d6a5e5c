// Proves that `pserver up` can be stopped at every moment of its start, and that what keeps it from
// starting ends it at once with the reason; and what limit its broker gets. Programs that play nats-server hold it up
// at each of them.
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { runProcess, start } from "../cli/spawn-command.ts";
import { HANG_MS } from "../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-start-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** Where a player of nats-server writes its pid. */
const reached = (): string => join(home, "reached");

/** What a player does behind `--version`; `ports` makes the file in which a broker names its port. */
const WAITS = "exec sleep 600";

/** A player of nats-server: told its arguments, it says its version or holds up what comes then. */
async function player(options: { version?: string; serve: string }): Promise<string> {
  const path = join(home, "nats-server");
  const { version = "echo nats-server: v2.12.0", serve } = options;
  const lines = [
    "#!/bin/sh",
    `if [ "$1" = --version ]; then ${version}; exit; fi`,
    `while [ "$1" != --ports_file_dir ]; do shift; done`,
    `PORTS=$2`,
    serve,
  ];
  await writeFile(path, `${lines.join("\n")}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Writes the pid of what goes on under it. */
const mark = (): string => `echo $$ >${reached()}.new; mv ${reached()}.new ${reached()}`;

/** A socket that takes connections and says `greeting`; answers its port and how many came. */
async function listener(greeting: string): Promise<{ port: number; count: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.write(greeting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  return { port, count: () => connections };
}

const namesPort = (port: number): string =>
  `echo '{"nats":["nats://127.0.0.1:${port}"]}' >"$PORTS/nats.ports"`;

const GREETING =
  'INFO {"version":"2.12.0","jetstream":true,"max_payload":8388608,"server_id":"x","headers":true,"proto":1}\r\n';

test.each(["is asked for its version", "starts", "should greet", "should answer hosts"] as const)(
  "Ctrl-C ends it while the broker %s",
  async (moment) => {
    const silent = await listener(moment === "should answer hosts" ? GREETING : "");
    const program = await {
      "is asked for its version": () => player({ version: `${mark()}; ${WAITS}`, serve: "exit 1" }),
      starts: () => player({ serve: `${mark()}; ${WAITS}` }),
      "should greet": () => player({ serve: `${namesPort(silent.port)}; ${mark()}; ${WAITS}` }),
      "should answer hosts": () =>
        player({ serve: `${namesPort(silent.port)}; ${mark()}; ${WAITS}` }),
    }[moment]();
    const up = start(["up", "--port", "0", "--store", join(home, "up")], {
      environment: { PSERVER_NATS_SERVER: program },
    });
    await vi.waitFor(() => expect(existsSync(reached())).toBe(true), WAIT);
    // The broker is dialled once for its greeting, and then by the host.
    const dials = { "should greet": 1, "should answer hosts": 2 }[moment as string] ?? 0;
    await vi.waitFor(() => expect(silent.count()).toBeGreaterThanOrEqual(dials), WAIT);
    const pid = Number(await readFile(reached(), "utf8"));
    up.child.kill("SIGINT");
    expect(await up.finished).toMatchObject({ code: 130, stdout: "" });
    expect(up.errors()).toContain("ABORTED");
    await vi.waitFor(() => expect(identifyProcess(pid)).toBeUndefined(), WAIT);
  },
);

test.each([
  ["up", []],
  ["run", ["--", "true"]],
])("%s --broker-memory is what the broker is limited to", async (command, rest) => {
  const limit = join(home, "limit");
  const program = await player({ serve: `echo "$GOMEMLIMIT" >"${limit}"; ${mark()}; ${WAITS}` });
  const flags = ["--port", "0", "--store", join(home, "up"), "--broker-memory", "300MiB"];
  const started = start([command, ...flags, ...rest], {
    environment: { PSERVER_NATS_SERVER: program, GOMEMLIMIT: "1GiB" },
  });
  await vi.waitFor(() => expect(existsSync(reached())).toBe(true), WAIT);
  expect((await readFile(limit, "utf8")).trim()).toBe(String(300 * 1024 ** 2));
  started.child.kill("SIGINT");
  await started.finished;
});

test("a port that is taken is named, with the process that has it", async () => {
  const { port } = await listener("");
  const { code, stdout, stderr } = await runProcess([
    "up",
    "--port",
    String(port),
    "--store",
    join(home, "up"),
  ]);
  expect([code, stdout]).toEqual([1, ""]);
  const lines = stderr.trim().split("\n");
  expect(lines[0]).toContain(
    `pserver: ADDRESS_IN_USE: expected 127.0.0.1:${port} to be free for the broker; process ${process.pid} (`,
  );
  expect(lines[1]).toMatch(/^hint: stop that process, or choose another port with --port/);
  expect(lines).toHaveLength(2);
});

test.skipIf(process.platform !== "linux")(
  "a store that cannot be made ends it with the reason",
  async () => {
    await writeFile(join(home, "file"), "");
    for (const store of ["/proc/pserver", join(home, "file"), join(home, "file", "up")]) {
      const { code, stderr } = await runProcess(["up", "--port", "0", "--store", store]);
      expect(code).toBe(6);
      expect(stderr).toContain(`IO: cannot make the directory ${store}/`);
      expect(stderr).toContain("hint: choose another directory with --store");
    }
  },
);

test("settings for another broker do not reach its hosts", async () => {
  const up = start(
    ["up", "--port", "0", "--store", join(home, "up"), "--hosts", "2", "--shards", "1", "--json"],
    { environment: { NATS_CREDS: "/nowhere/creds", NATS_URL: "nats://127.0.0.1:1" } },
  );
  expect(JSON.parse(await up.firstLine).hosts).toHaveLength(2);
  up.child.kill("SIGTERM");
  expect(await up.finished).toMatchObject({ code: 0 });
});
