// Proves, where there is Helm, that it takes the chart, and what comes of it: hosts that know all brokers and start with
// flags that `pserver` takes, trainers with ids and keys of their own, and a refusal of values that nothing reads. A chart
// of two lines stands for that of NATS.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { parsePserver } from "../../support/command-line.ts";

const HELM = [join(packageRoot(), ".tools", "bin"), ...(process.env["PATH"] ?? "").split(delimiter)]
  .map((directory) => join(directory, "helm"))
  .find((path) => existsSync(path));
const reason = HELM === undefined ? " (left out: there is no helm on the PATH)" : "";

/** What is looked at of the objects that Helm makes. */
interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly volumes: readonly {
          readonly name: string;
          readonly secret?: { readonly secretName: string };
        }[];
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly command: readonly string[];
          readonly env: readonly { readonly name: string; readonly value?: string }[];
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        }[];
      };
    };
  };
}

let chart: string;
beforeAll(async () => {
  chart = await mkdtemp(join(tmpdir(), "pserver-chart-"));
  await cp(join(packageRoot(), "deploy", "helm", "pserver"), chart, { recursive: true });
  const [{ version } = { version: "" }] = parse(
    await readFile(join(chart, "Chart.yaml"), "utf8"),
  ).dependencies;
  const nats = join(chart, "charts", "nats");
  await mkdir(join(nats, "templates"), { recursive: true });
  await writeFile(join(nats, "Chart.yaml"), `apiVersion: v2\nname: nats\nversion: ${version}\n`);
  const define = '{{- define "nats.fullname" -}}{{ .Release.Name }}-nats{{- end -}}\n';
  await writeFile(join(nats, "templates", "_helpers.tpl"), define);
});
afterAll(() => rm(chart, { recursive: true, force: true }));

function helm(...args: string[]): {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  const { status, stdout, stderr } = spawnSync(HELM ?? "", args, { encoding: "utf8" });
  return { code: status, stdout, stderr };
}

/** Makes the objects of a release with these settings. */
function render(...settings: string[]): KubernetesObject[] {
  const flags = settings.flatMap((each) => ["--set", each]);
  const { code, stdout, stderr } = helm("template", "train", chart, "--namespace", "ml", ...flags);
  expect([code, stderr]).toEqual([0, ""]);
  return parseAllDocuments(stdout).flatMap((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() ?? [];
  });
}

function find(objects: readonly KubernetesObject[], kind: string): KubernetesObject {
  const found = objects.filter((each) => each.kind === kind);
  expect(found.map(({ metadata }) => metadata.name)).toHaveLength(1);
  return found[0] as KubernetesObject;
}

/** How a broker is called in the namespace of {@link render}, as the chart of NATS calls it. */
const brokerName = (i: number): string =>
  `train-nats-${i}.train-nats-headless.ml.svc.cluster.local`;

const TRAINER = [
  "trainer.enabled=true",
  "trainer.image.repository=mine",
  "trainer.command={python3,train.py}",
  "trainer.count=3",
];

test("asks for brokers by a name of the certificate that the guide has made", () => {
  const guide = readFileSync(join(packageRoot(), "docs", "guides", "deploy.md"), "utf8");
  const [, name] = /auth init auth --job mnist --name '([^']+)'/.exec(guide) ?? [];
  const certificate = { subjectaltname: `DNS:${name}` } as PeerCertificate;
  for (const i of [0, 1, 2])
    expect(checkServerIdentity(brokerName(i), certificate)).toBeUndefined();
  expect(checkServerIdentity("other.example.org", certificate)).toBeDefined();
});

describe.skipIf(HELM === undefined)(`Helm${reason}`, () => {
  test("takes the chart", () => {
    expect(helm("lint", "--strict", chart)).toMatchObject({ code: 0 });
  });

  test("makes hosts that know all brokers, with flags that there are", async () => {
    const objects = render("newJob.quotaParameters=65536", "newJob.journalLimit=64MiB");
    const { spec } = find(objects, "Deployment");
    const [container] = spec.template.spec.containers;
    await parsePserver(container?.args ?? []);
    expect(container?.args).toEqual(
      expect.arrayContaining([
        "host",
        "--replicas=3",
        "--quota-parameters=65536",
        "--journal-limit=64MiB",
      ]),
    );
    expect(container?.env).toContainEqual({
      name: "PSERVER_URL",
      value: [0, 1, 2].map((i) => `tls://${brokerName(i)}:4222`).join(),
    });
    expect(spec.template.metadata.labels).toMatchObject(spec.selector?.matchLabels ?? { none: "" });
    expect(find(objects, "PodDisruptionBudget").spec.selector).toEqual(spec.selector);
    const paths = (container?.volumeMounts ?? []).map(({ mountPath }) => mountPath);
    for (const [, file = ""] of (container?.args ?? []).join("\n").matchAll(/=(\/etc\/\S+)/g)) {
      expect(paths.some((path) => file.startsWith(`${path}/`))).toBe(true);
    }
    const token = find(objects, "Secret").metadata.name;
    expect(spec.template.spec.volumes.map(({ secret }) => secret?.secretName)).toContain(token);
  });

  test("makes trainers that have ids and keys of their own", () => {
    const { spec } = find(render(...TRAINER), "Job");
    const [container] = spec.template.spec.containers;
    expect(container?.env).toContainEqual({
      name: "PSERVER_TRAINER",
      value: "trainer-$(PSERVER_RANK)",
    });
    // What the shell does, with the files of a trainer.
    const [shell = "", flag = "", script = "", ...words] = container?.command ?? [];
    expect(words.slice(1)).toEqual(["python3", "train.py"]);
    const keys = join(chart, "keys");
    const lines = `mkdir -p ${keys}; echo NATS_NKEY_PUBLIC=UABC > ${keys}/trainer-2.env;`;
    const ran = spawnSync(
      shell,
      [flag, `${lines} ${script.replaceAll("/etc/pserver/keys", keys)}`, "trainer", "env"],
      {
        encoding: "utf8",
        env: { ...process.env, PSERVER_TRAINER: "trainer-2" },
      },
    );
    const seen = ran.stdout.split("\n").filter((line) => line.startsWith("NATS_"));
    expect(seen.sort()).toEqual([
      `NATS_CA=${keys}/ca.pem`,
      `NATS_NKEY=${keys}/trainer-2.nk`,
      "NATS_NKEY_PUBLIC=UABC",
    ]);
  });

  test("leaves keys away where there are none, and takes brokers that are there already", () => {
    const settings = [
      "nats.enabled=false",
      "brokerUrl=nats://a:4222",
      "keys.hostSecret=",
      "keys.trainerSecret=",
    ];
    const objects = render(...settings, ...TRAINER);
    for (const kind of ["Deployment", "Job"]) {
      const [container] = find(objects, kind).spec.template.spec.containers;
      expect(container?.env).toContainEqual({ name: "PSERVER_URL", value: "nats://a:4222" });
      expect(JSON.stringify(container)).not.toContain("/etc/pserver/keys");
    }
  });

  test("refuses values that nothing reads, and brokers that nobody names", () => {
    expect(helm("template", "train", chart, "--set", "host.replica=3").stderr).toContain("replica");
    expect(helm("template", "train", chart, "--set", "newJob.sync=sometimes").stderr).toContain(
      "sync",
    );
    expect(helm("template", "train", chart, "--set", "nats.enabled=false").stderr).toContain(
      "brokerUrl: expected",
    );
    expect(helm("template", "train", chart, "--set", "trainer.enabled=true").stderr).toContain(
      "trainer.image.repository: expected",
    );
  });
});
