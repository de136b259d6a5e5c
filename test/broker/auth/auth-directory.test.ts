// Proves what `pserver auth` puts into a directory: files that only their owner reads, keys and certificates that belong
// together, variables by which a shell connects a trainer; and that nothing is replaced unless that is asked for.
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AuthDirectory } from "../../../src/broker/auth/auth-directory.ts";

const SETTINGS = { job: "mnist", trainers: ["trainer-1", "gpu.3"], names: ["broker.example"] };

/** A list of users that is whole but for its jobs. */
function listOf(jobs: readonly unknown[]): string {
  const users = { host: "H", answers: "N", admin: "A", observer: "O" };
  return JSON.stringify({ format: 1, jobs, users, trainers: [] });
}

let home: string;
/** With a blank and a quote, as a user's directory may have. */
let directory: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-auth-"));
  directory = join(home, "it's auth");
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function filesBelow(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((file) => join(file.parentPath, file.name));
}

test("only the owner may read the files", async () => {
  await AuthDirectory.make(directory, SETTINGS, false);
  const files = await filesBelow(directory);
  expect(files.length).toBeGreaterThan(12);
  for (const file of files) expect([file, (await stat(file)).mode & 0o777]).toEqual([file, 0o600]);
});

test("the certificate is for the broker's names, and of the authority", async () => {
  const auth = await AuthDirectory.make(directory, SETTINGS, false);
  const read = async (name: string) => new X509Certificate(await readFile(join(directory, name)));
  const [authority, server] = await Promise.all([read("ca.pem"), read("server.pem")]);
  expect(server.verify(authority.publicKey)).toBe(true);
  expect([authority.ca, server.ca]).toEqual([true, false]);
  expect(server.checkHost("broker.example")).toBe("broker.example");
  expect(server.checkHost("localhost")).toBe("localhost");
  expect(server.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(server.checkHost("other.example")).toBeUndefined();
  expect(auth.authorityFile).toBe(join(directory, "ca.pem"));
});

test("a shell reads a trainer's variables, and its key is the one with the permissions", async () => {
  const auth = await AuthDirectory.make(directory, SETTINGS, false);
  const print =
    'for name in PSERVER_JOB PSERVER_TRAINER NATS_NKEY NATS_NKEY_PUBLIC NATS_CA; do eval "printf \'%s\\n\' \\"\\$$name\\""; done';
  const script = `set -a; . "$1"; ${print}`;
  const output = execFileSync("sh", ["-c", script, "sh", auth.variablesFile("gpu.3")], {
    encoding: "utf8",
  });
  const [job, trainer, seedFile = "", publicKey, ca] = output.split("\n");
  expect([job, trainer, ca]).toEqual(["mnist", "gpu.3", auth.authorityFile]);
  const seed = (await readFile(seedFile, "utf8")).trim();
  expect(nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey()).toBe(publicKey);
  const config = await readFile(auth.configFile, "utf8");
  const own = config.slice(config.indexOf(`nkey: ${publicKey}`));
  expect(own.slice(0, own.indexOf("} }"))).toContain('"ps.mnist.log.*.trainer.gpu=2E3.push.*.*"');
});

test("nothing is replaced without force, and everything with it", async () => {
  const first = await AuthDirectory.make(directory, SETTINGS, false);
  const names = ["host.nk", "trainers/trainer-1.nk", "ca.pem", "server.key", "broker.conf"];
  const read = () => Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
  const before = await read();
  await expect(AuthDirectory.make(directory, SETTINGS, false)).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("--force"),
  });
  expect(await read()).toEqual(before);
  await AuthDirectory.make(directory, { ...SETTINGS, trainers: ["trainer-1"] }, true);
  for (const [index, text] of (await read()).entries()) expect(text).not.toBe(before[index]);
  expect(await readdir(join(directory, "trainers"))).toEqual(["trainer-1.env", "trainer-1.nk"]);
  expect(first.trainers).toEqual(["trainer-1", "gpu.3"]);
  expect((await AuthDirectory.open(directory))?.trainers).toEqual(["trainer-1"]);
});

test("files of somebody else are neither used nor replaced", async () => {
  await mkdir(directory);
  const own = join(directory, "ca.key");
  await writeFile(own, "mine");
  await expect(AuthDirectory.make(directory, SETTINGS, false)).rejects.toMatchObject({
    code: "BAD_VALUE",
  });
  await expect(AuthDirectory.open(directory)).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("auth.json"),
  });
  expect(await readFile(own, "utf8")).toBe("mine");
});

test("trainers are added, and keep their keys", async () => {
  await AuthDirectory.make(directory, SETTINGS, false);
  const seed = join(directory, "trainers", "trainer-1.nk");
  const before = await readFile(seed, "utf8");
  const opened = await AuthDirectory.open(directory);
  await opened?.add({ trainers: ["trainer-2"] });
  const again = await AuthDirectory.open(directory);
  expect(again?.jobs).toEqual(["mnist"]);
  expect(again?.trainers).toEqual(["trainer-1", "gpu.3", "trainer-2"]);
  expect(await readFile(seed, "utf8")).toBe(before);
  const config = await readFile(join(directory, "broker.conf"), "utf8");
  for (const id of ["trainer-1", "gpu=2E3", "trainer-2"]) {
    expect(config).toContain(`ps.mnist.block.*.*.${id}.pull`);
  }
});

test("a job is added: all users have their rights in both, and the first stays that of the variables", async () => {
  await AuthDirectory.make(directory, SETTINGS, false);
  const opened = await AuthDirectory.open(directory);
  await opened?.add({ jobs: ["mnist-2"] });
  const again = await AuthDirectory.open(directory);
  expect(again?.jobs).toEqual(["mnist", "mnist-2"]);
  const config = await readFile(join(directory, "broker.conf"), "utf8");
  for (const job of ["mnist", "mnist-2"]) {
    expect(config).toContain(`"ps.${job}.log.*.trainer.trainer-1.push.*.*"`);
    expect(config).toContain(`"$KV.PS_${job}.>"`);
    expect(config).toContain(`{ stream: { account: HOSTS, subject: "_INBOX_${job}.>" } }`);
  }
  expect(await readFile(again?.variablesFile("admin") ?? "", "utf8")).toContain(
    "PSERVER_JOB=mnist\n",
  );
  await expect(again?.add({ jobs: ["mnist"] })).rejects.toMatchObject({ code: "BAD_VALUE" });
  await expect(again?.add({ jobs: ["new", "new"] })).rejects.toMatchObject({ code: "BAD_VALUE" });
  await expect(again?.add({ jobs: ["a.b"] })).rejects.toMatchObject({ code: "BAD_NAME" });
  expect(await readFile(join(directory, "broker.conf"), "utf8")).toBe(config);
});

test.each([
  [["a", "a"], "BAD_VALUE"],
  [["observer"], "BAD_VALUE"],
  [["admin"], "BAD_VALUE"],
  [[""], "BAD_NAME"],
])("the trainers %j are refused before anything is written", async (trainers, code) => {
  const settings = { ...SETTINGS, trainers };
  await expect(AuthDirectory.make(directory, settings, false)).rejects.toMatchObject({ code });
  expect(await AuthDirectory.open(directory)).toBeUndefined();
});

test.each(["a b", "x, DNS:y", "", "a\nb", "-x"])(
  "the broker's name %j is refused",
  async (name) => {
    const settings = { ...SETTINGS, names: [name] };
    await expect(AuthDirectory.make(directory, settings, false)).rejects.toMatchObject({
      code: "BAD_NAME",
    });
    expect(await AuthDirectory.open(directory)).toBeUndefined();
  },
);

test.each([
  ["{", "BAD_FILE"],
  ['{"format":2}', "BAD_VERSION"],
  ['{"format":1,"jobs":["mnist"],"users":{},"trainers":[]}', "BAD_FILE"],
  [listOf(["a.b"]), "BAD_FILE"],
  [listOf([]), "BAD_FILE"],
  [listOf([1]), "BAD_FILE"],
])("the list of users %j is refused", async (text, code) => {
  await AuthDirectory.make(directory, SETTINGS, false);
  await writeFile(join(directory, "auth.json"), text);
  await expect(AuthDirectory.open(directory)).rejects.toMatchObject({
    code,
    message: expect.stringContaining("auth.json"),
  });
});

test("without openssl nothing is made, and nothing is lost", async () => {
  const path = process.env["PATH"];
  process.env["PATH"] = home;
  try {
    const refused = {
      code: "UNSUPPORTED",
      message: expect.stringContaining("there is no openssl"),
    };
    await expect(AuthDirectory.make(directory, SETTINGS, false)).rejects.toMatchObject(refused);
    expect(await AuthDirectory.open(directory)).toBeUndefined();
    process.env["PATH"] = path;
    await AuthDirectory.make(directory, SETTINGS, false);
    process.env["PATH"] = home;
    await expect(AuthDirectory.make(directory, SETTINGS, true)).rejects.toMatchObject(refused);
    expect((await AuthDirectory.open(directory))?.trainers).toEqual(SETTINGS.trainers);
  } finally {
    process.env["PATH"] = path;
  }
});
