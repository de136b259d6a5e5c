// Proves of the systemd units, without systemd: what they start is what the package has, with flags that it takes and
// variables that it reads, and a host's end fits its hand-over. That systemd takes them is in test/e2e/deploy.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { EXIT } from "../../src/cli/report-error.ts";
import { makeProgram, parsePserver } from "../support/command-line.ts";
import { readDeployed } from "./deployed-files.ts";

/** The settings of a unit: each name with all its values. */
function readUnit(name: string): Map<string, string[]> {
  const settings = new Map<string, string[]>();
  for (const [, key = "", value = ""] of readDeployed("systemd", name).matchAll(/^(\w+)=(.*)$/gm)) {
    settings.set(key, [...(settings.get(key) ?? []), value]);
  }
  return settings;
}

/** The variables of an environment file. */
function readVariables(name: string): ReadonlyMap<string, string> {
  return new Map(
    [...readDeployed("systemd", name).matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
      ([, key = "", value = ""]) => [key, value],
    ),
  );
}

const host = readUnit("pserver-host@.service");
const broker = readUnit("pserver-broker.service");
const first = (unit: Map<string, string[]>, name: string): string => unit.get(name)?.[0] ?? "";

describe("pserver-host@.service", () => {
  const variables = readVariables("host.env");

  test("starts a host with flags that there are", async () => {
    const [program, ...args] = first(host, "ExecStart")
      .replaceAll("%i", "mnist")
      .replaceAll("%S", "/var/lib")
      .replace("$PSERVER_HOST_FLAGS", variables.get("PSERVER_HOST_FLAGS") ?? "")
      .split(" ");
    expect(program).toBe("pserver");
    expect(args).toEqual(expect.arrayContaining(["--job", "mnist", "--answer-nkey", "--http"]));
    await parsePserver(args);
  });

  test("gets variables that the command reads", () => {
    const options = makeProgram("pserver")
      .commands.find((each) => each.name() === "host")
      ?.options.map(({ description, envVar }) => `${description} ${envVar ?? ""}`);
    for (const name of variables.keys()) {
      if (name !== "PSERVER_HOST_FLAGS") expect(options?.join("\n")).toContain(name);
    }
    expect(first(host, "EnvironmentFile")).toBe("/etc/pserver/%i.env");
  });

  test("starts after a broker on the same machine, stops before it, and does not need it", () => {
    expect(first(host, "After").split(" ")).toContain("pserver-broker.service");
    for (const name of ["Requires", "BindsTo", "PartOf", "Requisite"])
      expect(host.has(name)).toBe(false);
  });

  test("is given minutes to hand its shards over, with one signal", () => {
    expect(/^(\d+)min$/.exec(first(host, "TimeoutStopSec"))?.[1]).toSatisfy(
      (text) => Number(text) >= 2,
    );
    // SIGTERM is what systemd sends.
    expect(host.has("KillSignal")).toBe(false);
    expect(first(host, "KillMode")).toBe("mixed");
    expect(first(host, "SuccessExitStatus")).toBe(String(EXIT.interrupted));
  });

  test("is started again for ever, but not with a wrong command line", () => {
    expect(first(host, "Restart")).toBe("always");
    expect(first(host, "StartLimitIntervalSec")).toBe("0");
    expect(first(host, "RestartPreventExitStatus")).toBe(String(EXIT.badArguments));
  });
});

describe("pserver-broker.service", () => {
  test("starts the broker with the configuration beside it", () => {
    expect(first(broker, "ExecStart")).toBe("nats-server --config /etc/pserver/broker.conf");
    expect([...readVariables("broker.env").keys()]).toEqual(["GOMEMLIMIT", "GOGC"]);
  });

  test("stores where it may write", () => {
    const [, store] = /store_dir: "([^"]+)"/.exec(readDeployed("systemd", "broker.conf")) ?? [];
    expect(store).toBe(`/var/lib/${first(broker, "StateDirectory")}/broker`);
  });
});

test.each(["pserver-host@.service", "pserver-broker.service"])(
  "%s names files and a user that there are",
  (name) => {
    const unit = readUnit(name);
    const files = readdirSync(join(packageRoot(), "deploy", "systemd"));
    const named =
      readDeployed("systemd", name).match(/\/etc\/pserver\/[%\w]+\.(?:conf|env)/g) ?? [];
    const kept = new Set(
      named.map((path) => path.replace(/^.*\/(?:mnist|%i)\.env$/, "host.env").replace(/^.*\//, "")),
    );
    expect(files).toEqual(expect.arrayContaining([...kept]));
    const [, user] = /^u (\w+) /m.exec(readDeployed("systemd", "pserver.sysusers.conf")) ?? [];
    expect([first(unit, "User"), first(unit, "Group")]).toEqual([user, user]);
  },
);
