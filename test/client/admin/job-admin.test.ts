// Proves that versions are collected over all pages, and that a refused request leaves them unknown.
import { describe, expect, test } from "vitest";
import { JobAdmin } from "../../../src/client/admin/job-admin.ts";
import { Calls } from "../../../src/client/calls/calls.ts";
import type { Ask } from "../../../src/client/wire/wire.ts";
import { decodeMessage, type Fields } from "../../../src/protocol/codec.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { PARAMETERS_PER_REQUEST_MAX } from "../../../src/protocol/limits.ts";
import { JobSubjects } from "../../../src/protocol/subjects.ts";

/** An admin whose hosts answer as `reply` does. */
function adminOf(reply: (subject: string, fields: Fields) => Fields): JobAdmin {
  return new JobAdmin({
    connection: {} as never,
    requests: {
      ask: async <Answer>({ subject, body, read }: Ask<Answer>) => {
        const { fields } = decodeMessage(body("reply"));
        const message = { fields: reply(subject, fields), data: new Uint8Array(0) };
        // Its answers consist of one message.
        return read(message) as Answer;
      },
    },
    calls: new Calls(),
    subjects: new JobSubjects("mnist"),
    trainer: "cli",
    callOptions: { timeoutMs: 1_000 },
  });
}

const namesOf = (fields: Fields): string[] => fields["names"] as string[];
const MANY = Array.from({ length: PARAMETERS_PER_REQUEST_MAX + 1 }, (_, i) => `w${i}`);

describe("versions", () => {
  test("of all pages, with every shard that was silent in one", async () => {
    let pages = 0;
    const admin = adminOf((subject, fields) => {
      expect(subject).toMatch(/versions/);
      pages += 1;
      const versions = namesOf(fields).map((name) => (name === "w1" ? null : [1, 2, 3]));
      return { versions, silent: pages === 1 ? [3] : [3, 4] };
    });
    const known = await admin.versions(MANY);
    expect(pages).toBe(2);
    expect(known.versions.get("w0")).toEqual({ least: 1, most: 2, updates: 3 });
    expect(known.versions.get(`w${PARAMETERS_PER_REQUEST_MAX}`)).toBeDefined();
    expect(known.versions.has("w1")).toBe(false);
    expect(known.silentShards).toEqual([3, 4]);
    expect(known.refusal).toBeUndefined();
  });

  test.each(["DENIED", "BAD_MESSAGE"] as const)(
    "unknown after %s, with the reason",
    async (code) => {
      const admin = adminOf(() => {
        throw new PserverError(code, "not for you");
      });
      expect(await admin.versions(["w"])).toMatchObject({ refusal: "not for you" });
    },
  );

  test("fail with any other error", async () => {
    const admin = adminOf(() => {
      throw new PserverError("NO_HOST", "no host");
    });
    await expect(admin.versions(["w"])).rejects.toMatchObject({ code: "NO_HOST" });
  });
});
