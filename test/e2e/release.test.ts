// Proves what a release is refused for before anything is built, and that its list of parts is complete: it names each
// package that users of npm get or that is bundled, and each library in a wheel, and is the same when written again.
// That the built files themselves are the same is what `scripts/release/release.sh --compare` shows.
import { execFile, spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";

const run = promisify(execFile);

/** What a release looks at before it builds. */
const LOOKED_AT = [
  ...["package.json", "package-lock.json", "CHANGELOG.md", "include/pserver.h"],
  ...["scripts/release", "src/client/python/pserver/_version.py"],
];

async function scratch(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "pserver-release-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Makes a checkout with nothing but that, and what `change` does to it, committed. */
async function checkout(change: (root: string) => Promise<void>): Promise<string> {
  const root = await scratch();
  for (const path of LOOKED_AT) {
    await cp(join(packageRoot(), path), join(root, path), { recursive: true });
  }
  await change(root);
  const author = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
  await run("git", ["init", "-q", root]);
  await run("git", ["-C", root, "add", "."]);
  await run("git", ["-C", root, ...author, "commit", "-q", "-m", "Try"]);
  return root;
}

function release(root: string): { readonly code: number | null; readonly said: string } {
  const script = join(root, "scripts/release/release.sh");
  const { status, stderr } = spawnSync(script, { encoding: "utf8" });
  return { code: status, said: stderr };
}

describe("a release is refused", () => {
  test("with a file that is not committed", async () => {
    const root = await checkout(async () => {});
    await writeFile(join(root, "new.txt"), "");
    expect(release(root)).toEqual({
      code: 1,
      said: "release: expected a checkout without changes; received: ?? new.txt\n",
    });
  });

  test("with versions that differ", async () => {
    const root = await checkout(async (path) => {
      const header = join(path, "include/pserver.h");
      const text = await readFile(header, "utf8");
      await writeFile(header, text.replace(/(PSERVER_VERSION) ".*"/, '$1 "7.0.0"'));
    });
    const { code, said } = release(root);
    expect(code).toBe(1);
    expect(said).toMatch(
      /^release: include\/pserver\.h: expected version \S+; received 7\.0\.0\n$/,
    );
  });
});

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly hashes?: readonly { readonly content: string }[];
}

interface Sbom {
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

async function writeSbom(...args: string[]): Promise<string> {
  const script = join(packageRoot(), "scripts/release/write-sbom.mjs");
  const env = { ...process.env, SOURCE_DATE_EPOCH: "1800000000" };
  return (await run(process.execPath, [script, ...args], { env, maxBuffer: 2 ** 24 })).stdout;
}

const LOCK = JSON.parse(await readFile(join(packageRoot(), "package-lock.json"), "utf8"));
const VERSION: string = LOCK.version;

const NPM = spawnSync("npm", ["--version"], { encoding: "utf8" }).stdout.trim();

/** Why npm cannot list packages here, as that of Debian 13 cannot; "" where it can. */
const OBSTACLE = Number.parseInt(NPM, 10) >= 10 ? "" : ` (needs npm 10; this is ${NPM})`;

/** What is linked into each wheel. */
const CARRIED = ["openssl", "msgpack-c", "nats.c", "ziglang"];

/** SHA-256 of "content". */
const CONTENT_HASH = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";

const wheelOf = (architecture: string) =>
  `nats_pserver-${VERSION}-py3-none-manylinux_2_26_${architecture}.whl`;

/** Stands for the files of a release: their names and hashes are what counts. */
async function files(): Promise<string> {
  const directory = await scratch();
  for (const name of [wheelOf("x86_64"), wheelOf("aarch64"), `nats-pserver-${VERSION}.tgz`]) {
    await writeFile(join(directory, name), "content");
  }
  return directory;
}

describe("the list of parts", () => {
  test.skipIf(OBSTACLE !== "")(
    `names every package and library, and is the same when written again${OBSTACLE}`,
    async () => {
      const directory = await files();
      const text = await writeSbom("release", directory);
      expect(await writeSbom("release", directory)).toBe(text);
      const sbom: Sbom = JSON.parse(text);
      const refs = sbom.components.map((each) => each["bom-ref"]);
      expect(new Set(refs).size).toBe(refs.length);
      const dependsOn = (ref: string) =>
        sbom.dependencies.find((each) => each.ref === ref)?.dependsOn ?? [];

      const locked: [string, { version: string; dev?: boolean }][] = Object.entries(LOCK.packages);
      const forUsers = locked
        .filter(([path, { dev }]) => path !== "" && dev !== true)
        .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`);
      expect(forUsers.length).toBeGreaterThan(20);
      const { dependencies, devDependencies } = LOCK.packages[""];
      const bundled = ["@nats-io/transport-node", "@nats-io/jetstream", "@nats-io/kv", "uplot"];
      const own = bundled.map((name) => `${name}@${devDependencies[name]}`);
      expect(refs).toEqual(expect.arrayContaining([...forUsers, ...own]));
      expect(refs.filter((ref) => /^(?:vitest|typescript)@/.test(ref))).toEqual([]);
      const direct = Object.entries(dependencies).map(([name, at]) => `${name}@${at}`);
      const ofPackage = dependsOn(`nats-pserver@${VERSION}`);
      expect(ofPackage).toEqual(expect.arrayContaining([...direct, ...own]));
      expect(ofPackage.filter((ref) => !refs.includes(ref) || ref.startsWith("@types/"))).toEqual(
        [],
      );

      for (const [architecture, debian] of [
        ["x86_64", "arch=amd64"],
        ["aarch64", "arch=arm64"],
      ] as const) {
        const inside = dependsOn(
          `pkg:pypi/nats-pserver@${VERSION}?file_name=${wheelOf(architecture)}`,
        );
        const named = new Map(sbom.components.map((each) => [each["bom-ref"], each.name]));
        expect(inside.map((ref) => named.get(ref))).toEqual(CARRIED);
        expect(inside[0]).toContain(debian);
      }
      const hashed = sbom.components.filter((each) => each.name === "nats-pserver");
      expect(hashed.map((each) => each.hashes?.[0]?.content)).toEqual(
        Array.from({ length: 3 }, () => CONTENT_HASH),
      );
    },
  );

  test("of a wheel names what is linked into it", async () => {
    const sbom: Sbom = JSON.parse(await writeSbom("wheel", "aarch64"));
    expect(sbom.components.map(({ name }) => name)).toEqual(CARRIED);
    expect(sbom.components[0]?.["bom-ref"]).toMatch(/^pkg:deb\/debian\/libssl-dev@3\.0\.\S+arm64/);
  });

  test.skipIf(OBSTACLE !== "")(`refuses a file of no known kind${OBSTACLE}`, async () => {
    const directory = await files();
    await writeFile(join(directory, "nats_pserver-0.1.0-py3-none-any.whl"), "");
    await expect(writeSbom("release", directory)).rejects.toThrow(
      "expected the tarball, or a wheel for a known architecture; received",
    );
  });
});

test("a wheel is refused whose library needs a newer system than its name says", async () => {
  const directory = await scratch();
  const library = join(packageRoot(), "build/lib/libpserver.so");
  const architecture = process.arch === "arm64" ? "aarch64" : "x86_64";
  // With the machine's own libraries: no machine that tests run on is as old as glibc 2.17.
  const args = [library, directory, `manylinux_2_17_${architecture}`, join(directory, "wheels")];
  const script = join(packageRoot(), "scripts/make-wheel.sh");
  const { status, stderr } = spawnSync(script, args, { encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /^wheel: expected a library for manylinux_2_17_\w+; received one that needs manylinux_2_\d+_\w+\n$/,
  );
});
