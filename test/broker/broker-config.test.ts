// Proves the text of the configuration a broker is started with: what is included, what is set
// anew, and that a path which could break out of its quotes is refused. That a broker accepts the
// text is proved by test/e2e/broker.test.ts.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  fileLimitBytes,
  packageRoot,
  setsFileLimit,
  writeBrokerConfig,
} from "../../src/broker/broker-config.ts";

describe("writeBrokerConfig", () => {
  test("includes the package's file and replaces its jetstream block", () => {
    const root = packageRoot();
    const { text, flags } = writeBrokerConfig({ storeDir: join(root, "a", "store") });
    expect(text.split("\n").slice(1)).toEqual([
      'include "./../../nats.conf"',
      "jetstream {",
      `  store_dir: "${join(root, "a", "store")}"`,
      "}",
      "",
    ]);
    expect(flags).toEqual([]);
  });

  test("makes relative paths absolute", () => {
    const { text } = writeBrokerConfig({ storeDir: "store", configFile: "mine.conf" });
    expect(text).toContain('include "./../mine.conf"');
    expect(writeBrokerConfig({ storeDir: "store" }).text).toContain(
      `  store_dir: "${join(process.cwd(), "store")}"`,
    );
    const { flags } = writeBrokerConfig({ storeDir: "store", configFile: "/etc/mine.conf" });
    expect(flags).toEqual(["-sd", join(process.cwd(), "store")]);
  });

  test("syncs no single record unless that is asked for", () => {
    const { text } = writeBrokerConfig({ storeDir: "/data", durable: false });
    expect(text).not.toContain("sync_interval");
  });

  test("adds the sync of each record, limits and further lines in their places", () => {
    const { text } = writeBrokerConfig({
      storeDir: "/data",
      durable: true,
      jetstreamConfig: "max_file: 1GB",
      extraConfig: "max_connections: 5",
    });
    const lines = text.split("\n").slice(2);
    expect(lines).toEqual([
      "jetstream {",
      '  store_dir: "/data"',
      "  sync_interval: always",
      "max_file: 1GB",
      "}",
      "max_connections: 5",
      "",
    ]);
  });

  test("sets what the broker may keep in files, before lines that come last", () => {
    const { text } = writeBrokerConfig({ storeDir: "/data", jetstreamConfig: "domain: x" }, 4096);
    expect(text).toContain('  store_dir: "/data"\n  max_file: 4096\ndomain: x\n}');
    const own = { storeDir: "/data", configFile: "/etc/mine.conf" };
    expect(writeBrokerConfig(own, 4096).text).not.toContain("max_file");
  });

  test("gives files three quarters of the free disk, and never less than before", () => {
    const last = (bytes: number): string => writeBrokerConfig({ storeDir: "/data" }, bytes).text;
    expect(fileLimitBytes(4001, "")).toBe(3000);
    expect(fileLimitBytes(4000, last(2999))).toBe(3000);
    expect(fileLimitBytes(4000, last(3001))).toBe(3001);
    expect(fileLimitBytes(0, last(2 ** 50))).toBe(2 ** 50);
    // A limit of the user's is not one of ours.
    const theirs = writeBrokerConfig({ storeDir: "/data", jetstreamConfig: "max_file: 5000" });
    expect(fileLimitBytes(4000, theirs.text)).toBe(3000);
  });

  test.each([
    [{}, true],
    [{ jetstreamConfig: "domain: x" }, true],
    [{ jetstreamConfig: "max_file: 1GB" }, false],
    [{ jetstreamConfig: "domain: x, max_file_store: 1GB" }, false],
    [{ configFile: "/etc/mine.conf" }, false],
  ])("%j: the limit of files is ours: %s", (settings, ours) => {
    expect(setsFileLimit({ storeDir: "/data", ...settings })).toBe(ours);
  });

  test("keeps the jetstream block of a file of the user's, and sets the directory by flag", () => {
    const { text, flags } = writeBrokerConfig({
      storeDir: "/data/store",
      configFile: "/etc/mine.conf",
    });
    expect(text).toContain('include "./../../etc/mine.conf"');
    expect(text).not.toContain("jetstream");
    expect(flags).toEqual(["-sd", "/data/store"]);
  });

  test.each([{ durable: true }, { durable: false }, { jetstreamConfig: "max_file: 1GB" }])(
    "refuses a file of the user's with %j, which would be ignored",
    (settings) => {
      const call = () => writeBrokerConfig({ storeDir: "/d", configFile: "/c", ...settings });
      expect(call).toThrow(expect.objectContaining({ code: "BAD_VALUE" }));
    },
  );

  test.each(['/a"b', "/a\\b", "/a\nb", "/a\u0000b"])("refuses the path %j", (path) => {
    const badPath = expect.objectContaining({ code: "BAD_PATH" });
    expect(() => writeBrokerConfig({ storeDir: path })).toThrow(badPath);
    expect(() => writeBrokerConfig({ storeDir: "/data", configFile: path })).toThrow(badPath);
  });
});
