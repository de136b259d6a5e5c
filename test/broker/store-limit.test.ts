// Proves how much a broker may keep on a disk: on directories laid out as nats-server does, and at the
// borders between what is free and what is reserved.
import { mkdir, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { limitBytes, readStoredBytes, storeLimitBytes } from "../../src/broker/store-limit.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

let store: string;
beforeEach(async () => {
  store = await mkdtemp(join(tmpdir(), "pserver-limit-"));
});
afterEach(() => rm(store, { recursive: true, force: true }));

/** A stream of an account with a file of so many bytes. */
async function stream(path: string, config: unknown, bytes: number): Promise<void> {
  const [account = "", name = ""] = path.split("/");
  const directory = join(store, "jetstream", account, "streams", name);
  await mkdir(join(directory, "msgs"), { recursive: true });
  const text = typeof config === "string" ? config : JSON.stringify(config);
  await writeFile(join(directory, "meta.inf"), text);
  await writeFile(join(directory, "msgs", "1.blk"), Buffer.alloc(bytes - text.length));
}

describe("limitBytes", () => {
  test("of an empty store is three quarters of the free disk, as nats-server has it", () => {
    expect(limitBytes(4 * GIB, { used: 0, reserved: 0 })).toBe(3 * GIB);
  });

  test("counts what the store holds as its own", () => {
    expect(limitBytes(4 * GIB, { used: 20 * GIB, reserved: 20 * GIB })).toBe(23 * GIB);
  });

  test("is never less than what is reserved, and leaves some room for what is new", () => {
    expect(limitBytes(4 * GIB, { used: 0, reserved: 10 * GIB })).toBe(10 * GIB + 64 * MIB);
    expect(limitBytes(MIB, { used: 0, reserved: GIB })).toBe(GIB + MIB / 4);
    expect(limitBytes(0, { used: 5, reserved: GIB })).toBe(GIB);
  });

  test("is a whole number", () => {
    expect(limitBytes(0, { used: 0, reserved: 0 })).toBe(0);
    expect(limitBytes(1001, { used: 0, reserved: 0 })).toBe(750);
  });
});

describe("readStoredBytes", () => {
  test("finds nothing in a new store", async () => {
    expect(await readStoredBytes(join(store, "none"))).toEqual({ used: 0, reserved: 0 });
  });

  test("sums over streams of all accounts the larger of what is reserved and what is held", async () => {
    await stream("$G/PS_a_0", { storage: "file", max_bytes: 5000 }, 300);
    await stream("HOSTS/PS_b_0", { storage: "file", max_bytes: 1000 }, 1500);
    await stream("HOSTS/SNAPSHOT", { storage: "file", max_bytes: -1 }, 700);
    expect(await readStoredBytes(store)).toEqual({ used: 2500, reserved: 7200 });
  });

  test("takes streams in memory, and what it cannot read, for the files they are", async () => {
    await stream("$G/MEMORY", { storage: "memory", max_bytes: 9000 }, 200);
    await stream("$G/ENCRYPTED", "\u0001\u0002 no JSON", 400);
    await stream("$G/ODD", { storage: "file", max_bytes: "many" }, 100);
    await writeFile(join(store, "jetstream", "in-the-way"), "");
    expect(await readStoredBytes(store)).toEqual({ used: 700, reserved: 700 });
  });
});

test("storeLimitBytes looks at the disk of the store", async () => {
  await stream("$G/PS_a_0", { storage: "file", max_bytes: Number.MAX_SAFE_INTEGER - GIB }, 300);
  const limit = await storeLimitBytes(store);
  const { bavail, bsize } = await statfs(store);
  expect(limit).toBeGreaterThan(Number.MAX_SAFE_INTEGER - GIB);
  expect(limit).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER - GIB + bavail * bsize);
  await expect(storeLimitBytes(join(store, "none"))).rejects.toMatchObject({ code: "IO" });
});
