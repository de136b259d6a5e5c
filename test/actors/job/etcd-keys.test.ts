import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkPrefix,
  checkSpaceId,
  EtcdKeys,
  parseEtcdEndpoints,
  toAdvertised,
} from "../../../src/actors/job/etcd-space.ts";
import { codeOf, refusalOf } from "../../protocol/refusal.ts";

// Proves which addresses, prefixes and identities of etcd are taken, and what is told to trainers: no
// credentials leave a host, every address has a scheme and a port, and keys are those of the document.

test("the keys of a job", () => {
  expect({ ...new EtcdKeys("j") }).toEqual({
    desired: "/ps_desired",
    servers: "/ps/",
    job: "/ps/job",
    lock: "/init_ps/lock",
    done: "/init_ps/done",
    id: "/ps_id",
    leases: "/leases/j/",
  });
  expect(new EtcdKeys("mnist", "/team/a").leases).toBe("/team/a/leases/mnist/");
  expect(codeOf(() => new EtcdKeys("no/job"))).toBe("BAD_NAME");
});

test("the index of a published host", () => {
  const keys = new EtcdKeys("j", "/p");
  expect(["0", "7", "12"].map((name) => keys.serverIndex(`/p/ps/${name}`))).toEqual([0, 7, 12]);
  const others = ["/p/ps/job", "/p/ps/01", "/p/ps/", "/p/ps/1/2", "/p/ps/-1", "/ps/1", "/p/ps/1e3"];
  expect(others.filter((key) => keys.serverIndex(key) !== undefined)).toEqual([]);
});

describe("addresses of etcd", () => {
  test.each([
    ["http://a:2379", ["http://a:2379"]],
    ["http://a", ["http://a:2379"]],
    ["http://a:80", ["http://a:80"]],
    ["https://a:443/", ["https://a:443"]],
    [" http://a:1 ,http://b:2,", ["http://a:1", "http://b:2"]],
    ["http://[::1]:2379", ["http://[::1]:2379"]],
    [["http://10.0.0.1:1"], ["http://10.0.0.1:1"]],
  ])("%s", (given, endpoints) => {
    expect(parseEtcdEndpoints(given)).toEqual(endpoints);
  });

  test.each([
    "",
    ",",
    "a:2379",
    "127.0.0.1",
    "nats://a:4222",
    "http://",
    "http://a:2379/v3",
    "http://a:2379?x=1",
    "http://a:99999",
    "http://a:1,https://b:2",
    "http://user:secret@a:2379",
    Array.from({ length: 17 }, (_, i) => `http://a:${i + 1}`).join(),
  ])("not %s", (given) => {
    const error = refusalOf(() => parseEtcdEndpoints(given));
    expect(error.code).toBe("BAD_VALUE");
    expect(error.message).toMatch(/expected .*; received /);
    expect(error.message).not.toContain("secret");
  });
});

test("prefixes", () => {
  for (const prefix of ["", "/a", "/team/mnist-1", "/a.b/_"]) {
    expect(checkPrefix(prefix)).toBe(prefix);
  }
  for (const prefix of ["a", "/", "/a/", "//a", "/a b", "/ä", "/a/b/c/d/e", `/${"x".repeat(65)}`]) {
    expect(
      codeOf(() => checkPrefix(prefix)),
      prefix,
    ).toBe("BAD_VALUE");
  }
});

test("identities", () => {
  const id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
  expect(checkSpaceId(id, "/ps_id")).toBe(id);
  for (const text of ["", "x", "kv", `${id}\n`, "3f25 04e0"]) {
    expect(refusalOf(() => checkSpaceId(text, "/ps_id")).message).toContain("/ps_id");
  }
});

describe("what trainers are told of the broker", () => {
  test.each([
    ["nats://a:4222", ["nats://a:4222"]],
    ["a", ["nats://a:4222"]],
    ["a:1", ["nats://a:1"]],
    ["TLS://a:1/", ["tls://a:1"]],
    ["nats://user:secret@a:1,nats://token@b", ["nats://a:1", "nats://b:4222"]],
    ["[::1]:4222", ["nats://[::1]:4222"]],
    ["nats://[::1]", ["nats://[::1]:4222"]],
  ])("%s", (given, urls) => {
    expect(toAdvertised(given)).toEqual(urls);
  });

  test.each(["", "http://a", "nats://", "a b", "nats://a/path", `nats://${"a".repeat(300)}`])(
    "not %s",
    (given) => {
      expect(codeOf(() => toAdvertised(given))).toBe("BAD_VALUE");
    },
  );

  test("never a credential", () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9:=%!-]{1,20}$/);
    fc.assert(
      fc.property(secret, fc.domain(), (info, host) => {
        expect(toAdvertised(`nats://${info}@${host}:4222`)).toEqual([`nats://${host}:4222`]);
      }),
    );
  });
});
