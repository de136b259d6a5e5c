// Proves of the chart, without Helm: every value that a template names is in values.yaml and in the schema, and the other
// way round; settings of a new job are all flags of `pserver host` that are; probes, ports, keys and the broker's
// settings are those of the product. What Helm makes of it is in test/e2e/deploy.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { makeProgram } from "../support/command-line.ts";
import { parseDeployed, pinnedBroker, readDeployed } from "./deployed-files.ts";

const CHART = ["helm", "pserver"];

type Values = Readonly<Record<string, unknown>>;

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly enum?: readonly string[];
}

const values = parseDeployed<Values>(...CHART, "values.yaml");
const schema = JSON.parse(readDeployed(...CHART, "values.schema.json")) as Schema;
const templates = readdirSync(join(packageRoot(), "deploy", ...CHART, "templates"));
const sources = new Map(templates.map((name) => [name, readDeployed(...CHART, "templates", name)]));
const hostTemplate = sources.get("host-deployment.yaml") ?? "";

function isMap(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function valueAt(path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, key) => (isMap(value) ? value[key] : undefined), values);
}

/** Whether the schema has a place for a path; a map of anything has one for whatever is below. */
function schemaAt(path: string): Schema | undefined {
  return path.split(".").reduce<Schema | undefined>((at, key) => {
    const found = at?.properties?.[key];
    if (found !== undefined || at?.additionalProperties === false) return found;
    return at?.type === "object" ? { type: "object" } : undefined;
  }, schema);
}

/** Paths of everything in a map, down to where the schema names no further properties. */
function leaves(at: Values, above = ""): string[] {
  return Object.entries(at).flatMap(([key, value]) => {
    const path = above === "" ? key : `${above}.${key}`;
    const isOpen = schemaAt(path)?.properties === undefined;
    return isMap(value) && !isOpen ? leaves(value, path) : [path];
  });
}

const used = [
  ...new Set([...sources.values()].flatMap((text) => text.match(/\.Values(?:\.\w+)+/g) ?? [])),
].map((path) => path.slice(".Values.".length));

describe("values", () => {
  test.each(used)("%s is in values.yaml and in the schema", (path) => {
    expect(valueAt(path)).toBeDefined();
    expect(schemaAt(path)).toBeDefined();
  });

  test("that are in values.yaml are in the schema with their type, and templates use them", () => {
    for (const path of leaves(values)) {
      const { type, enum: choices } = schemaAt(path) ?? {};
      const value = valueAt(path);
      const is = Array.isArray(value) ? "array" : isMap(value) ? "object" : typeof value;
      const types = [type].flat().map((each) => (each === "integer" ? "number" : each));
      expect([path, types]).toEqual([path, expect.arrayContaining([is])]);
      if (choices !== undefined) expect(choices).toContain(value);
      if (path.startsWith("nats.")) continue;
      // One that is used as a whole, such as resources, or as part of a map that is.
      const isUsed = used.some((each) => each === path || path.startsWith(`${each}.`));
      expect([path, isUsed]).toEqual([path, true]);
    }
  });

  test("refuses a name that nothing reads", () => {
    expect(schemaAt("host.replica")).toBeUndefined();
    expect(schemaAt("newJob.shard")).toBeUndefined();
  });
});

const kebab = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const options =
  makeProgram("pserver").commands.find((each) => each.name() === "host")?.options ?? [];

describe("hosts", () => {
  test("newJob has each flag that is about a new job", () => {
    const ofNewJob = options.filter(
      ({ description, long }) =>
        /new job|^for (?:sync|ssp|diloco)/.test(description) ||
        long?.startsWith("--trainer-quota-p"),
    );
    const flags = ofNewJob.map(({ long }) => long).concat("--trainer-quota-bytes");
    const named = Object.keys(schemaAt("newJob")?.properties ?? {}).map(
      (name) => `--${kebab(name)}`,
    );
    expect(named.length).toBeGreaterThan(10);
    expect([...new Set(flags)].sort()).toEqual(named.sort());
  });

  test("get flags and variables that there are", () => {
    const flags = [...hostTemplate.matchAll(/^ +- (--[\w-]+)=?/gm)].map(([, flag]) => flag);
    expect(flags.length).toBeGreaterThan(4);
    const known = options.map(({ long }) => long);
    expect(flags.filter((flag) => !known.includes(flag))).toEqual([]);
    for (const name of ["PSERVER_URL", "PSERVER_JOB"]) {
      expect(hostTemplate).toContain(`- name: ${name}`);
      expect(options.map(({ description, envVar }) => `${description} ${envVar}`).join()).toContain(
        name,
      );
    }
  });

  test("are asked for health and readiness at the port where they serve them", () => {
    const documented = readDeployed("..", "docs", "reference", "metrics.md");
    const probes = [
      ...hostTemplate.matchAll(/(\w+)Probe:\n +httpGet: \{ path: (\S+), port: (\w+) \}/g),
    ].map(([, probe, path, port]) => ({ probe, path, port }));
    expect(probes).toEqual([
      { probe: "liveness", path: "/healthz", port: "http" },
      { probe: "readiness", path: "/readyz", port: "http" },
    ]);
    for (const { path } of probes) expect(documented).toContain(`| \`${path}\` |`);
    expect(hostTemplate).toContain("--http=0.0.0.0:{{ .Values.host.http.port }}");
    expect(hostTemplate).toMatch(
      /name: http\n +containerPort: \{\{ \.Values\.host\.http\.port \}\}/,
    );
  });

  test("run as the user of the image", () => {
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(readDeployed("docker", "Dockerfile")) ?? [];
    expect(hostTemplate).toContain(`runAsUser: ${user}\n        runAsGroup: ${group}`);
    expect(hostTemplate).toContain("runAsNonRoot: true");
  });

  test("are replaced one by one, each after the new one serves", () => {
    expect(hostTemplate).toContain("rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }");
    expect(valueAt("host.podDisruptionBudget")).toEqual({ enabled: true, maxUnavailable: 1 });
    expect(valueAt("host.terminationGracePeriodSeconds")).toSatisfy((s) => Number(s) >= 120);
  });
});

test("trainers get what `pserver run` gives them", () => {
  const text = readDeployed("..", "docs", "guides", "launcher.md");
  const names = [...(sources.get("trainer-job.yaml") ?? "").matchAll(/- name: ([A-Z_]+)/g)].map(
    ([, name]) => name,
  );
  expect(names).toContain("PSERVER_TRAINER");
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

describe("the brokers", () => {
  /** Settings of a file of nats-server outside of blocks. */
  const settings = Object.fromEntries(
    [...readDeployed("..", "nats.conf").matchAll(/^(\w+): "?([^"\n]+)"?$/gm)].map(
      ([, name, value]) => [name, value],
    ),
  );

  test("have the settings of nats.conf", () => {
    const { $include: included, ...merged } = valueAt("nats.config.merge") as Values;
    const plain = Object.fromEntries(
      Object.entries(merged).map(([name, value]) => [
        name,
        String(value).replace(/^<< (.*) >>$/, "$1"),
      ]),
    );
    const { listen, ...expected } = settings;
    expect(plain).toEqual(expected);
    expect(included).toBe("../pserver-auth/broker.conf");
    expect(valueAt("nats.config.nats.tls.dir")).toBe("/etc/pserver-auth");
  });

  test("sync as nats-durable.conf does", () => {
    expect(readDeployed("..", "nats-durable.conf")).toMatch(/^ {2}sync_interval: always$/m);
    expect(valueAt("nats.config.jetstream.merge")).toEqual({ sync_interval: "always" });
  });

  test("are of the version that set-up provides, and as many as the job has copies", () => {
    expect(valueAt("nats.container.image.tag")).toBe(`${pinnedBroker()}-alpine`);
    expect(valueAt("nats.config.cluster.replicas")).toBe(valueAt("newJob.replicas"));
  });
});

test("chart and image have the version of the package", () => {
  const { version } = JSON.parse(readDeployed("..", "package.json")) as { version: string };
  const chart = parseDeployed<Values>(...CHART, "Chart.yaml");
  expect([chart["version"], chart["appVersion"]]).toEqual([version, version]);
});
