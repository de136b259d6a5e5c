// Proves of the image and of the services of compose.yaml, without a container: the image is made of what the package
// ships, holds the pinned broker, and does not run as root; services name files, volumes, services, ports and keys
// that there are; their commands are ones that `pserver` takes; and no key is in a file.
import { existsSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { HTTP_PORT_DEFAULT } from "../../src/cli/commands/up.ts";
import { checkBrokerVersion } from "../../src/protocol/broker-version.ts";
import { parsePserver } from "../support/command-line.ts";
import { parseDeployed, pinnedBroker, readDeployed } from "./deployed-files.ts";

const manifest = JSON.parse(readDeployed("..", "package.json")) as {
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly files: readonly string[];
};

interface Instruction {
  readonly name: string;
  readonly value: string;
}

interface Stage {
  readonly name: string;
  readonly from: string;
  readonly instructions: readonly Instruction[];
}

/** The stages of the Dockerfile; what is before the first is one without a name. */
function readStages(): Stage[] {
  const text = readDeployed("docker", "Dockerfile")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, " ");
  const all = [...text.matchAll(/^([A-Z]+) (.+)$/gm)].map(
    ([, name = "", value = ""]): Instruction => ({ name, value }),
  );
  const stages: { name: string; from: string; instructions: Instruction[] }[] = [
    { name: "", from: "", instructions: [] },
  ];
  for (const each of all) {
    if (each.name === "FROM") {
      const [from = "", , name = "last"] = each.value.split(" ");
      stages.push({ name, from, instructions: [] });
    } else stages.at(-1)?.instructions.push(each);
  }
  return stages;
}

const stages = readStages();

function stage(name: string): Stage {
  const found = stages.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no stage ${name}`);
  return found;
}

/** The values of all instructions of a name in a stage. */
function values(stageName: string, instruction: string): string[] {
  return stage(stageName)
    .instructions.filter(({ name }) => name === instruction)
    .map(({ value }) => value);
}

/** The variables that the image sets. */
const imageEnvironment = Object.fromEntries(
  values("server", "ENV").flatMap((line) => line.split(" ").map((each) => each.split("="))),
) as Readonly<Record<string, string>>;

describe("the image", () => {
  test("is the server unless another target is named", () => {
    expect(stages.at(-1)).toMatchObject({ from: "server", instructions: [] });
    expect(stage("demo").from).toBe("server");
  });

  test("holds the broker that set-up provides, and a Node.js of the oldest line that the package accepts", () => {
    const base = Object.fromEntries(values("", "ARG").map((line) => line.split("=")));
    expect(base).toMatchObject({ BROKER_IMAGE: `nats:${pinnedBroker()}` });
    expect(checkBrokerVersion(pinnedBroker())).toBe("recommended");
    const [, major] = /^node:(\d+)-/.exec(base["NODE_IMAGE"]) ?? [];
    expect(manifest.engines.node.startsWith(`>=${major}.`)).toBe(true);
  });

  test("takes what was installed from the package, and nothing else of the checkout", () => {
    expect(values("build", "RUN").at(-1)).toMatch(
      /make package .*DESTDIR=\/out scripts\/install\.sh$/,
    );
    expect(values("server", "COPY")).toEqual(["--from=build /out/ /"]);
    for (const line of values("demo", "COPY")) expect(line).toMatch(/^--from=programs \/build\//);
  });

  test("does not run as root", () => {
    const [user = "", ...others] = values("server", "USER");
    expect(others).toEqual([]);
    expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(values("demo", "USER")).toEqual([]);
  });

  test("runs the command as a process that gets signals", () => {
    const [entry = "[]"] = values("server", "ENTRYPOINT");
    // In the form without a shell, which would keep them.
    const words = JSON.parse(entry) as string[];
    expect(words).toEqual(["tini", "--", "pserver"]);
    expect(Object.keys(manifest.bin)).toContain("pserver");
  });

  test("asks for health where `up` serves it", () => {
    expect(imageEnvironment["HEALTH_URL"]).toBe(`http://127.0.0.1:${HTTP_PORT_DEFAULT}/healthz`);
    expect(values("server", "HEALTHCHECK").join()).toContain("fetch(process.env.HEALTH_URL)");
    expect(values("server", "EXPOSE").join().split(" ")).toContain(String(HTTP_PORT_DEFAULT));
  });

  test("keeps its data in a volume, in which the command runs", () => {
    expect(values("server", "VOLUME")).toEqual(["/data"]);
    expect(values("server", "WORKDIR")).toEqual(["/data"]);
    expect(imageEnvironment["HOME"]).toBe("/data");
  });

  test("is built from a context that has what the package ships", () => {
    const ignored = readDeployed("..", ".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(ignored).toEqual(
      expect.arrayContaining(["node_modules", "dist", "**/*.nk", "**/*.key"]),
    );
    // dist is made in the image.
    const needed = manifest.files
      .map((path) => path.split("/")[0] ?? "")
      .filter((path) => path !== "dist" && !path.startsWith("!"));
    expect(needed.filter((path) => ignored.includes(path))).toEqual([]);
  });
});

interface Service {
  readonly image: string;
  readonly build?: {
    readonly context: string;
    readonly dockerfile: string;
    readonly target: string;
  };
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly disable?: boolean; readonly test?: readonly string[] };
  readonly ports?: readonly string[];
  readonly profiles?: readonly string[];
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly volumes?: readonly string[];
}

const compose = parseDeployed<{
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}>("compose.yaml");
const services = Object.entries(compose.services);

/** A mount: where it comes from, where it is seen, and whether only to be read. */
function mountsOf({ volumes = [] }: Service): { from: string; at: string; isReadOnly: boolean }[] {
  return volumes.map((line) => {
    const [from = "", at = "", mode] = line.split(":");
    return { from, at, isReadOnly: mode === "ro" };
  });
}

/** Names of services whose name has this beginning and a number. */
function numbered(start: string): string[] {
  return services.map(([name]) => name).filter((name) => new RegExp(`^${start}-\\d$`).test(name));
}

/** The hosts' names in addresses that are separated by commas, with their ports. */
function addressesIn(text = ""): string[] {
  return [...text.matchAll(/\/\/([^,\s]+)/g)].map(([, address = ""]) => address);
}

const brokers = numbered("broker");
const hosts = numbered("host");
const flagOf = (service: Service | undefined, name: string): string | undefined =>
  service?.command?.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);

describe("compose.yaml", () => {
  test("has three brokers, two hosts, a trainer, and what watches them", () => {
    expect([brokers.length, hosts.length]).toEqual([3, 2]);
    for (const name of ["trainer", "prometheus", "grafana"]) {
      expect(compose.services).toHaveProperty(name);
    }
  });

  test.each(services)(
    "%s waits for services that there are, in a way that ends",
    (_name, service) => {
      for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
        const needed = compose.services[name];
        expect(needed).toBeDefined();
        if (condition === "service_healthy") {
          // Those that are built get the check of the image.
          expect(needed?.build?.target === "server" || needed?.healthcheck?.test).toBeTruthy();
          expect(needed?.healthcheck?.disable).toBeUndefined();
        } else {
          expect(condition).toBe("service_completed_successfully");
          expect(needed?.restart).toBeUndefined();
        }
      }
    },
  );

  test.each(services)("%s mounts files and volumes that there are", (name, service) => {
    for (const { from, isReadOnly } of mountsOf(service)) {
      if (from.startsWith(".")) {
        expect(existsSync(join(packageRoot(), "deploy", from))).toBe(true);
        expect(isReadOnly).toBe(true);
      } else {
        expect(compose.volumes).toHaveProperty(from);
        // Nobody but who makes the keys can change them.
        if (/keys|auth|token/.test(from)) expect(isReadOnly).toBe(name !== "keys");
      }
    }
  });

  test.each(services)(
    "%s is built from this checkout, or is an image of a version",
    (_name, service) => {
      if (service.build === undefined) return expect(service.image).toMatch(/:v?\d+\.\d+\.\d+$/);
      const { context, dockerfile, target } = service.build;
      expect(normalize(join("deploy", context))).toBe(".");
      expect(existsSync(join(packageRoot(), dockerfile))).toBe(true);
      expect(stages.map(({ name }) => name)).toContain(target);
    },
  );

  test.each(services)("%s publishes ports to this machine only", (_name, { ports = [] }) => {
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test.each(services)("%s has no key in its environment", (_name, { environment = {} }) => {
    const named = Object.entries(environment).filter(
      ([name, value]) =>
        /PASSWORD|TOKEN|SECRET|NKEY|KEY$|CREDS/.test(name) && !value.startsWith("/"),
    );
    expect(named).toEqual([]);
  });

  test("hosts run with flags that there are, and are asked for health where they serve it", async () => {
    for (const name of hosts) {
      const { command = [], environment = {} } = compose.services[name] ?? {};
      await parsePserver(command);
      expect(command[0]).toBe("host");
      const port = flagOf(compose.services[name], "http")?.split(":")[1];
      expect(environment["HEALTH_URL"]).toBe(`http://127.0.0.1:${port}/readyz`);
      expect(addressesIn(environment["PSERVER_URL"])).toEqual(
        brokers.map((each) => `${each}:4222`),
      );
    }
  });

  test("keeps as many copies as there are brokers, and both hosts make the same job", () => {
    expect(flagOf(compose.services["host-1"], "replicas")).toBe(String(brokers.length));
    expect(compose.services["host-2"]?.command).toEqual(compose.services["host-1"]?.command);
  });

  test("the trainer knows all brokers, and joins the job of the hosts", () => {
    const { trainer } = compose.services;
    expect(addressesIn(flagOf(trainer, "url"))).toEqual(brokers.map((each) => `${each}:4222`));
    const job = compose.services["host-1"]?.environment?.["PSERVER_JOB"];
    expect(flagOf(trainer, "job")).toBe(job);
    expect(compose.services["keys"]?.environment?.["PSERVER_JOB"]).toBe(job);
    const program = readFileSync(join(packageRoot(), "examples/digits/trainer.ts"), "utf8");
    const flags = (trainer?.command ?? []).map((word) => /^--(\w+)=/.exec(word)?.[1]);
    for (const flag of flags) expect(program).toContain(`    ${flag}: { type: "string"`);
  });

  test("brokers find each other under names of their certificate", () => {
    const script = readDeployed("docker", "make-keys.sh");
    const names = [...script.matchAll(/--name (\S+)/g)].map(([, name]) => name);
    expect(names).toEqual(brokers);
    for (const name of brokers) {
      const { command = [], environment = {} } = compose.services[name] ?? {};
      expect(environment["PSERVER_NODE"]).toBe(name);
      expect(addressesIn(command.at(-1))).toEqual(brokers.map((each) => `${each}:6222`));
      expect(command).toContain("/etc/pserver/broker.conf");
    }
    expect(readDeployed("docker", "broker.conf")).toContain('listen: "0.0.0.0:6222"');
  });

  test("keys are read where they are mounted", () => {
    const script = readDeployed("docker", "make-keys.sh");
    const filesIn = (volume: string): string[] => {
      const at = mountsOf(compose.services["keys"] as Service).find(
        ({ from }) => from === volume,
      )?.at;
      const copied = script
        .split("\n")
        .find((line) => line.startsWith("cp ") && line.endsWith(` ${at}/`));
      return (copied ?? "")
        .split(" ")
        .slice(1, -1)
        .map((word) => {
          return word === '"$token"' ? "token" : (/([\w.-]+)"$/.exec(word)?.[1] ?? word);
        });
    };
    const read = (service: Service): string[] =>
      [...(service.command ?? []), ...Object.values(service.environment ?? {})].flatMap(
        (word) => /(?:^|=)\/keys\/(\S+)$/.exec(word)?.[1] ?? [],
      );
    for (const [name, volume] of [
      ...hosts.map((host) => [host, "host-keys"]),
      ["trainer", "trainer-keys"],
    ] as const) {
      const service = compose.services[name ?? ""] as Service;
      expect(mountsOf(service)).toContainEqual({ from: volume, at: "/keys", isReadOnly: true });
      expect(read(service).length).toBeGreaterThan(1);
      expect(filesIn(volume ?? "")).toEqual(expect.arrayContaining(read(service)));
    }
  });

  test("Prometheus scrapes both hosts with their token, and reads the rules", () => {
    const { scrape_configs: jobs, rule_files: rules } = parseDeployed<{
      readonly rule_files: readonly string[];
      readonly scrape_configs: readonly {
        readonly authorization: { readonly credentials_file: string };
        readonly honor_labels: boolean;
        readonly static_configs: readonly { readonly targets: readonly string[] }[];
      }[];
    }>("prometheus", "prometheus.yml");
    const [job] = jobs;
    const port = flagOf(compose.services["host-1"], "http")?.split(":")[1];
    expect(job?.static_configs[0]?.targets).toEqual(hosts.map((name) => `${name}:${port}`));
    expect(job?.honor_labels).toBe(true);
    const mounts = mountsOf(compose.services["prometheus"] as Service);
    const keys = mounts.find(({ from }) => from === "metrics-token");
    expect(job?.authorization.credentials_file).toBe(`${keys?.at}/token`);
    for (const file of rules) {
      expect(mounts).toContainEqual({
        from: `./prometheus/${file}`,
        at: `/etc/prometheus/${file}`,
        isReadOnly: true,
      });
    }
  });

  test("Grafana shows the dashboard, with the data of Prometheus", () => {
    const grafana = compose.services["grafana"] as Service;
    const mounts = mountsOf(grafana);
    const dashboard = mounts.find(({ from }) => from === "./grafana/pserver.json")?.at;
    const { providers } = parseDeployed<{ providers: readonly { options: { path: string } }[] }>(
      ...["grafana", "provisioning", "dashboards", "pserver.yml"],
    );
    expect(`${providers[0]?.options.path}/pserver.json`).toBe(dashboard);
    expect(grafana.environment?.["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).toBe(dashboard);
    const { datasources } = parseDeployed<{
      datasources: readonly { type: string; url: string }[];
    }>(...["grafana", "provisioning", "datasources", "prometheus.yml"]);
    const [source] = datasources;
    expect(source?.type).toBe("prometheus");
    const [name = ""] = addressesIn(source?.url).map((address) => address.split(":")[0] ?? "");
    expect(Object.keys(compose.services)).toContain(name);
  });
});
