// Proves where the token of a broker on this machine is found: for a loopback address, in a file that only this
// user can read; never for a list that names another machine.
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { findLocalToken, tokenFile } from "../../src/transport/local-token.ts";

let state = "";
const env = () => ({ XDG_STATE_HOME: state });

beforeAll(async () => {
  state = await mkdtemp(join(tmpdir(), "pserver-token-"));
  await mkdir(dirname(tokenFile(env(), 4222)), { recursive: true });
  await writeFile(tokenFile(env(), 4222), "first\n", { mode: 0o600 });
  await writeFile(tokenFile(env(), 5000), "second\n", { mode: 0o600 });
  return () => rm(state, { recursive: true, force: true });
});

describe("an address", () => {
  test.each<[string, string | undefined]>([
    ["nats://127.0.0.1:4222", "first"],
    ["127.0.0.1", "first"],
    ["nats://localhost", "first"],
    ["nats://[::1]:5000", "second"],
    ["NATS://LOCALHOST:5000/", "second"],
    ["nats://127.0.0.1:5001", undefined],
    ["nats://10.0.0.1:4222", undefined],
    ["nats://localhost.example.org:4222", undefined],
    ["nats://127.0.0.1.example.org:4222", undefined],
    ["tls://127.0.0.1:4222", undefined],
  ])("%s: %s", (server, token) => {
    expect(findLocalToken([server], env())).toBe(token);
  });

  test("of a cluster on this machine: the first that has one", () => {
    expect(findLocalToken(["127.0.0.1:5001", "127.0.0.1:5000"], env())).toBe("second");
  });

  test("beside one elsewhere gets no token", () => {
    expect(findLocalToken(["127.0.0.1:4222", "broker:4222"], env())).toBeUndefined();
  });
});

describe("the directory of tokens", () => {
  test.each<[Record<string, string>, string]>([
    [{ XDG_STATE_HOME: "/state", HOME: "/users/a" }, "/state/pserver/token-1"],
    [{ XDG_STATE_HOME: "relative", HOME: "/users/a" }, "/users/a/.local/state/pserver/token-1"],
    [{ XDG_STATE_HOME: "", HOME: "/users/a" }, "/users/a/.local/state/pserver/token-1"],
  ])("%j: %s", (environment, path) => {
    expect(tokenFile(environment, 1)).toBe(path);
  });
});

describe("a file is refused", () => {
  test.each([0o640, 0o604, 0o620])("of mode %o", async (mode) => {
    const path = tokenFile(env(), 6000);
    await writeFile(path, "third\n");
    await chmod(path, mode);
    expect(() => findLocalToken(["127.0.0.1:6000"], env())).toThrow(
      `mode 600, for its owner only; received ${mode.toString(8)}`,
    );
  });

  test("that is longer than a token", async () => {
    await writeFile(tokenFile(env(), 6001), "x".repeat(2_000), { mode: 0o600 });
    expect(() => findLocalToken(["127.0.0.1:6001"], env())).toThrow("at most 1024 bytes");
  });

  test.skipIf(process.getuid?.() !== 0)("of another user", async () => {
    const { chown } = await import("node:fs/promises");
    const path = tokenFile(env(), 6002);
    await writeFile(path, "fourth\n", { mode: 0o600 });
    await chown(path, 12_345, 12_345);
    expect(() => findLocalToken(["127.0.0.1:6002"], env())).toThrow("one of user 12345");
  });
});
