// Proves where connection settings come from and which source wins, with environments and NATS
// contexts of the test's own in a temporary directory.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDuration } from "../../../src/client/calls/calls.ts";
import { resolveConnection, resolveSettings } from "../../../src/client/wire/broker-settings.ts";

let home: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "pserver-settings-"));
  mkdirSync(join(home, "nats", "context"), { recursive: true });
  const context = (name: string, entries: object): void =>
    writeFileSync(join(home, "nats", "context", `${name}.json`), JSON.stringify(entries));
  context("lab", {
    url: "nats://lab:4222",
    user: "lab-user",
    password: "lab-password",
    ca: "~/ca.pem",
    description: "",
    something_new: true,
  });
  context("other", { url: "nats://other:4222", creds: "/c.creds" });
  context("secure", { url: "tls://secure" });
  context("asks-nsc", { url: "nats://x:4222", nsc: "nsc://a/b" });
  writeFileSync(join(home, "nats", "context", "broken.json"), "{");
  writeFileSync(join(home, "nats", "context.txt"), "lab\n");
  writeFileSync(join(home, "seed"), "SUAM\n");
});

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

const bare = (): Record<string, string> => ({ XDG_CONFIG_HOME: join(home, "none"), HOME: home });
const withContexts = (): Record<string, string> => ({ XDG_CONFIG_HOME: home, HOME: home });

describe("address", () => {
  test("is the caller's, else PSERVER_URL, else NATS_URL, else the selected context's, else local", () => {
    const env = { ...withContexts(), PSERVER_URL: "nats://p:1", NATS_URL: "nats://n:1" };
    expect(resolveSettings({ url: "nats://c:1" }, env).servers).toEqual(["nats://c:1"]);
    expect(resolveSettings({}, env).servers).toEqual(["nats://p:1"]);
    expect(resolveSettings({}, { ...env, PSERVER_URL: "" }).servers).toEqual(["nats://n:1"]);
    expect(resolveSettings({}, withContexts()).servers).toEqual(["nats://lab:4222"]);
    expect(resolveSettings({}, bare()).servers).toEqual(["nats://127.0.0.1:4222"]);
  });

  test("may be several, and may hold credentials", () => {
    const settings = resolveSettings({ url: "nats://a%40b:s%3Acret@h1:1, h2:2" }, bare());
    expect(settings).toMatchObject({
      servers: ["nats://h1:1", "h2:2"],
      user: "a@b",
      password: "s:cret",
    });
    expect(resolveSettings({ url: ["tls://tok@[::1]:4222/"] }, bare())).toMatchObject({
      servers: ["tls://[::1]:4222"],
      token: "tok",
    });
  });

  test.each(["nats://h1:1,h2:2,", ",nats://h1:1, ,h2:2", "nats://h1:1,,h2:2 , "])(
    "has nothing between two commas, or at the ends: %j",
    (url) => {
      expect(resolveSettings({ url }, bare()).servers).toEqual(["nats://h1:1", "h2:2"]);
      expect(resolveSettings({}, { ...bare(), NATS_URL: url }).servers).toHaveLength(2);
    },
  );

  test.each([
    // What is left of a password with commas, and nothing at all.
    ...["nats://u:12,,34@h", "u:12@h,", ",", " , "],
    ...["", "nats://", "nats://a/b", "nats://u:%zz@h", "nats://h:65536", "nats://h:port"],
    // Other transports would be dialled as plain TCP.
    ...["wss://h", "ws://h", "http://h"],
    // Servers of which one would take the password unprotected.
    ...["tls://h1,nats://h2", "nats://h1,tls://h2", "tls://h1,h2"],
    // What a comma in a password makes of an address.
    ...["nats://u:12,34@h"],
  ])("refuses %j", (url) => {
    expect(() => resolveSettings({ url }, bare())).toThrow(
      expect.objectContaining({ code: "BAD_VALUE" }),
    );
  });

  test("an error does not repeat the password", () => {
    expect(() => resolveSettings({ url: "nats://u:secret@h/x" }, bare())).toThrow(/^(?!.*secret)/);
  });
});

describe("credentials", () => {
  test("come as a whole from the first source that has any", () => {
    const env = { ...bare(), NATS_USER: "eu", NATS_PASSWORD: "ep" };
    expect(resolveSettings({}, env)).toMatchObject({ user: "eu", password: "ep" });
    const token = resolveSettings({ token: "t" }, env);
    expect(token).toMatchObject({ token: "t" });
    expect(token.user).toBeUndefined();
  });

  test("are a user of the caller's with the password of the environment", () => {
    const env = { ...bare(), NATS_PASSWORD: "ep" };
    const own = { user: "cu", password: "ep" };
    expect(resolveSettings({ user: "cu" }, env)).toMatchObject(own);
    expect(resolveSettings({ user: "cu" }, { ...env, NATS_USER: "cu" })).toMatchObject(own);
    expect(resolveSettings({ user: "cu", password: "cp" }, env).password).toBe("cp");
    expect(resolveSettings({ user: "cu" }, { ...env, NATS_USER: "eu" })).not.toHaveProperty(
      "password",
    );
    for (const other of [{ token: "t" }, { creds: "/c.creds" }, { nkey: "/seed" }]) {
      expect(resolveSettings(other, env)).not.toHaveProperty("password");
    }
    expect(resolveSettings({ url: "nats://tok@h:1" }, env)).not.toHaveProperty("password");
  });

  test("of the selected context never go to an address from elsewhere", () => {
    expect(resolveSettings({ url: "nats://c:1" }, withContexts()).user).toBeUndefined();
    expect(resolveSettings({}, withContexts())).toMatchObject({
      user: "lab-user",
      tls: { caFile: join(home, "ca.pem") },
    });
  });

  test("of a named context fill in what is missing", () => {
    expect(resolveSettings({ url: "nats://c:1", context: "lab" }, withContexts())).toMatchObject({
      servers: ["nats://c:1"],
      user: "lab-user",
    });
    expect(resolveSettings({}, { ...withContexts(), NATS_CONTEXT: "other" })).toMatchObject({
      servers: ["nats://other:4222"],
      credsFile: "/c.creds",
    });
  });

  test("and TLS files may come from the environment", () => {
    const env = { ...bare(), NATS_CERT: "c", NATS_KEY: "k", NATS_CA: "a", NATS_NKEY: "n" };
    expect(resolveSettings({}, env)).toMatchObject({
      nkeyFile: "n",
      tls: { certFile: "c", keyFile: "k", caFile: "a" },
    });
  });

  test("in a file that is missing are refused with its path", () => {
    expect(() => resolveConnection({ creds: "/no/such" }, bare())).toThrow("/no/such");
    expect(resolveConnection({ nkey: join(home, "seed") }, bare()).authenticator).toBeTypeOf(
      "function",
    );
  });
});

describe("TLS", () => {
  test("is asked for by the scheme or by a file, whatever the source", () => {
    const tls = (url: string, more = {}): unknown =>
      resolveConnection({ url, ...more }, bare()).tls;
    expect(tls("tls://h1:1,TLS://h2")).toEqual({});
    // Any file that there is: nothing reads it before a connection is made.
    const caFile = join(home, "seed");
    expect(tls("tls://h", { tlsCa: caFile })).toEqual({ caFile });
    expect(tls("nats://h", { tlsCa: caFile })).toEqual({ caFile });
    expect(tls("nats://h")).toBeUndefined();
    expect(tls("h")).toBeUndefined();
    expect(resolveConnection({}, { ...bare(), NATS_URL: "tls://h" }).tls).toEqual({});
    const env = { ...withContexts(), NATS_CONTEXT: "secure" };
    expect(resolveConnection({}, env)).toMatchObject({ servers: ["tls://secure"], tls: {} });
  });
});

describe("contexts", () => {
  test.each(["../lab", "a/b", "none", "broken", "asks-nsc"])("refuses %j", (context) => {
    expect(() => resolveSettings({ context }, withContexts())).toThrow(
      expect.objectContaining({ code: "BAD_VALUE" }),
    );
  });
});

describe("options of nats.js", () => {
  test("always name the connection, its inbox, and never give up reconnecting", () => {
    const options = resolveConnection({ name: "x", inboxPrefix: "_INBOX_j.t" }, bare());
    expect(options).toMatchObject({
      name: "x",
      inboxPrefix: "_INBOX_j.t",
      maxReconnectAttempts: -1,
      timeout: 5_000,
    });
    expect(options.reconnectJitter).toBeGreaterThan(0);
  });

  test("NATS_TIMEOUT is a duration, and the caller's wins", () => {
    const env = { ...bare(), NATS_TIMEOUT: "1m30s" };
    expect(resolveConnection({}, env).timeout).toBe(90_000);
    expect(resolveConnection({ connectTimeoutMs: 7 }, env).timeout).toBe(7);
    expect(parseDuration("250ms", "x")).toBe(250);
    expect(parseDuration("1.5s", "x")).toBe(1_500);
    for (const text of ["5", "s", "-1s", "0s", "5 s", "1d"]) {
      expect(() => parseDuration(text, "NATS_TIMEOUT")).toThrow("NATS_TIMEOUT");
    }
  });
});
