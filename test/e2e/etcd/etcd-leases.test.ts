// Proves that leases in a real etcd keep the promises of the interface: one holder, known by its owner,
// until it is released or runs out; that calls end in typed errors in bounded time when etcd is away,
// frozen or not etcd at all; and that a restart of etcd loses nothing.
import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { EtcdClient, type EtcdWrite } from "../../../src/actors/job/etcd-client.ts";
import { EtcdLeases } from "../../../src/actors/job/etcd-leases.ts";
import { LeaseView } from "../../../src/actors/job/leases.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

const LEASE_MS = 2_000;
const ROOT = "/leases/j/";
const a = { owner: "a", host: "h1" };
const b = { owner: "b" };

let etcd: TestEtcd;

beforeEach(async () => {
  etcd = await TestEtcd.start();
});

afterEach(async () => {
  await etcd.remove();
});

async function open(
  options: { endpoints?: string[]; timeoutMs?: number } = {},
): Promise<{ client: EtcdClient; leases: EtcdLeases }> {
  const { endpoints = [etcd.url], timeoutMs = 20_000 } = options;
  const client = await EtcdClient.open({ endpoints, timeoutMs });
  onTestFinished(() => client.close());
  return {
    client,
    leases: new EtcdLeases(client, ROOT, LEASE_MS, { reach: async () => undefined }),
  };
}

async function gone(key: string): Promise<void> {
  await etcd.until(ROOT + key, (entries) => entries.length === 0);
}

test("one of many at once claims a lease, and may claim it again", async () => {
  const { leases } = await open();
  const owners = Array.from({ length: 20 }, (_, i) => ({ owner: `o${i}` }));
  const claims = await Promise.all(owners.map((value) => leases.claim("shard.1", value)));
  const holder = owners[claims.indexOf(true)];
  expect(claims.filter(Boolean)).toHaveLength(1);
  expect(await leases.read("shard.1")).toEqual(holder);
  expect(holder && (await leases.claim("shard.1", holder))).toBe(true);
});

test("only the holder renews, with another value too; a lease that ran out can be claimed", async () => {
  const { leases } = await open();
  await leases.claim("k", a);
  const [before] = await etcd.list(`${ROOT}k`);
  expect(await leases.renew("k", b)).toBe(false);
  expect(await leases.renew("k", { ...a, host: "h2" })).toBe(true);
  expect(await leases.read("k")).toEqual({ ...a, host: "h2" });
  const [after] = await etcd.list(`${ROOT}k`);
  expect(after?.lease).toBe(before?.lease);
  await gone("k");
  expect(await leases.renew("k", a)).toBe(false);
  expect(await leases.read("k")).toBeUndefined();
  expect(await leases.claim("k", b)).toBe(true);
});

test("only the holder releases, and its lease ends with the key", async () => {
  const { client, leases } = await open();
  await leases.claim("k", a);
  const [entry] = await etcd.list(`${ROOT}k`);
  await leases.release("k", b);
  expect(await leases.read("k")).toEqual(a);
  await leases.release("k", a);
  await leases.release("k", a);
  expect(await client.keepAlive(entry?.lease ?? "0")).toBe(false);
  expect(await leases.claim("k", b)).toBe(true);
});

test("lists what is held under a prefix, and nothing beside it", async () => {
  const { leases } = await open();
  await Promise.all([
    leases.claim("host.one", a),
    leases.claim("host.two", b),
    leases.claim("hosts.no", b),
    leases.claim("shard.1", b),
  ]);
  expect(await leases.keys("host.")).toEqual(new Set(["host.one", "host.two"]));
  const listed = await leases.list("host.");
  expect([...listed].map(([key, { value }]) => [key, value])).toEqual([
    ["host.one", a],
    ["host.two", b],
  ]);
});

test("others end a lease only as they have read it", async () => {
  const { leases } = await open();
  await leases.claim("shard.1", a);
  const read = (await leases.list("shard.")).get("shard.1");
  if (read === undefined) throw new Error("expected a lease");
  expect(await leases.renew("shard.1", { ...a, host: "h2" })).toBe(true);
  expect(await leases.end("shard.1", read)).toBe(false);
  expect(await leases.claim("shard.1", { ...a, host: "h3" })).toBe(true);
  expect(await leases.read("shard.1")).toEqual({ ...a, host: "h3" });
  const again = (await leases.list("shard.")).get("shard.1");
  expect(again && (await leases.end("shard.1", again))).toBe(true);
  expect(await leases.renew("shard.1", a)).toBe(false);
  expect(await leases.claim("shard.1", b)).toBe(true);
});

test("a key without a lease, or of another kind, is refused by name", async () => {
  const { client, leases } = await open();
  await etcd.put(`${ROOT}k`, JSON.stringify(a));
  await expect(leases.claim("k", a)).rejects.toMatchObject({ code: "BAD_MESSAGE" });
  const lease = await client.grant(LEASE_MS);
  for (const value of ["{", "1", '{"owner":1}']) {
    await client.swap([], [{ kind: "put", key: `${ROOT}k`, value, lease }]);
    await expect(leases.read("k"), value).rejects.toMatchObject({ code: "BAD_MESSAGE" });
  }
});

test("swaps all or nothing, and not with a lease that has ended", async () => {
  const { client } = await open();
  const absent = (key: string): { key: string; revision: undefined } => ({
    key,
    revision: undefined,
  });
  expect(await client.swap([absent("/a")], [{ kind: "put", key: "/a", value: "1" }])).toBe(true);
  const writes: EtcdWrite[] = [
    { kind: "put", key: "/b", value: "2" },
    { kind: "remove", key: "/a" },
  ];
  expect(await client.swap([absent("/b"), absent("/a")], writes)).toBe(false);
  expect((await client.list("/")).map(({ key }) => key)).toEqual(["/a"]);
  const revision = (await client.read("/a"))?.revision;
  expect(await client.swap([{ key: "/a", revision }, absent("/b")], writes)).toBe(true);
  expect((await client.list("/")).map(({ key }) => key)).toEqual(["/b"]);
  const lease = await client.grant(LEASE_MS);
  await client.revoke(lease);
  await client.revoke(lease);
  expect(await client.swap([], [{ kind: "put", key: "/c", value: "3", lease }])).toBe(false);
});

describe("without an answer", () => {
  test("nothing listens: NO_ETCD names the addresses", async () => {
    const { leases } = await open();
    await etcd.kill();
    await expect(leases.claim("k", a)).rejects.toMatchObject({
      code: "NO_ETCD",
      retryable: true,
      message: expect.stringContaining(etcd.url),
    });
  });

  test("etcd is frozen: NO_ETCD at a call's deadline; afterwards calls succeed", async () => {
    const { client: patient, leases } = await open();
    const { client: hurried, leases: hurriedLeases } = await open({ timeoutMs: 1_000 });
    expect(await leases.claim("k", a)).toBe(true);
    const lease = await patient.grant(LEASE_MS);
    await freeze(etcd.pid);
    await expect(hurried.keepAlive(lease)).rejects.toMatchObject({ code: "NO_ETCD" });
    await expect(hurriedLeases.renew("k", a)).rejects.toMatchObject({ code: "NO_ETCD" });
    await expect(hurriedLeases.keys("k")).rejects.toMatchObject({ code: "NO_ETCD" });
    thaw(etcd.pid);
    await expect
      .poll(() => leases.claim("k", a).catch(() => false), { timeout: HANG_MS })
      .toBe(true);
  });

  test("something else listens, which says nothing or speaks another protocol", async () => {
    for (const greeting of ["", "INFO {}\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"]) {
      const port = await listen(greeting);
      const { client } = await open({ endpoints: [`http://127.0.0.1:${port}`], timeoutMs: 300 });
      await expect(client.read("k"), greeting).rejects.toMatchObject({ code: "NO_ETCD" });
    }
  });

  test("a silent address before a good one costs a part of the time, and once", async () => {
    const port = await listen("");
    const endpoints = [`http://127.0.0.1:${port}`, etcd.url];
    const { leases } = await open({ endpoints, timeoutMs: 3_000 });
    expect(await leases.claim("k", a)).toBe(true);
    expect(await leases.renew("k", a)).toBe(true);
    await leases.release("k", a);
  });
});

test("an etcd that asks for a user: DENIED, which no retry helps", async () => {
  const { leases } = await open();
  await etcd.post("/v3/auth/user/add", { name: "root", password: "secret" });
  await etcd.post("/v3/auth/role/add", { name: "root" });
  await etcd.post("/v3/auth/user/grant", { user: "root", role: "root" });
  await etcd.post("/v3/auth/enable", {});
  const refused = { code: "DENIED", retryable: false };
  await expect(leases.claim("k", a)).rejects.toMatchObject(refused);
  await expect(leases.keys("k")).rejects.toMatchObject(refused);
});

test("a restart keeps leases and their holders, and a view calls nobody lost meanwhile", async () => {
  const { client, leases } = await open({ timeoutMs: 1_000 });
  const turns: (string | undefined)[] = [];
  client.watch((lost) => turns.push(lost?.code));
  const view = new LeaseView({ leases, prefix: "host.", leaseMs: LEASE_MS });
  onTestFinished(() => view.stop());
  expect(await leases.claim("host.a", a)).toBe(true);
  await view.start();
  await etcd.kill();
  await expect.poll(() => turns, { timeout: HANG_MS }).toEqual(["NO_ETCD"]);
  expect(view.settled).toBe(false);
  expect(view.isLost("host.b")).toBe(false);
  await etcd.start();
  await expect
    .poll(() => leases.renew("host.a", a).catch(() => false), { timeout: HANG_MS })
    .toBe(true);
  expect(turns).toEqual(["NO_ETCD", undefined]);
  await expect.poll(() => view.isLost("host.b"), { timeout: HANG_MS }).toBe(true);
});

/** A server that greets, and says nothing else. */
async function listen(greeting: string): Promise<number> {
  const sockets = new Set<{ destroy(): void }>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    if (greeting !== "") socket.write(greeting);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
