// Proves that the watermark of how far a shard is folded only rises, whoever writes it in which order and
// whatever requests and answers are lost, that an owner which was deposed writes none after its
// successor has, and that a take-over passes exactly if the journal holds what was covered. The records
// are a table in memory that loses what it is told to; orders are drawn by chance.
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { NotedChecksum } from "../../../src/actors/fold/journal-checksum.ts";
import { recordCrc } from "../../../src/actors/fold/journal-record.ts";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import { checkJournal } from "../../../src/actors/journal/journal-check.ts";
import {
  isLater,
  parseWatermark,
  toWatermarkEntry,
  type Watermark,
  watermarkKey,
} from "../../../src/actors/journal/watermark.ts";
import { WatermarkKeeper } from "../../../src/actors/journal/watermark-keeper.ts";
import { encodeMessage, PserverError } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const SHARD = 3;
const KEY = watermarkKey(SHARD);

let records: MemoryBucket;

beforeEach(() => {
  records = new MemoryBucket();
});

function watermark(
  term: number,
  generation: number,
  seq: number,
  earlier: readonly NotedChecksum[] = [],
): Watermark {
  return { term, generation, ...notedAt(seq), recordCrc: 7 * seq, earlier };
}

function notedAt(seq: number): NotedChecksum {
  return { seq, checksum: [seq, 2 * seq, 3 * seq] };
}

function record(watermark: Watermark): object {
  return toWatermarkEntry({ watermark: watermark, bucket: "now" }) as object;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

async function stored(): Promise<Watermark | undefined> {
  return await new WatermarkKeeper(records, SHARD).read();
}

async function keeper(): Promise<WatermarkKeeper> {
  const made = new WatermarkKeeper(records, SHARD);
  await made.read();
  return made;
}

describe("a watermark", () => {
  test("is found by the next owner", async () => {
    const first = await keeper();
    expect(first.last).toBeUndefined();
    await first.raise(watermark(1, 1, 5));
    await first.raise(watermark(1, 1, 9));
    expect(first.last).toEqual(watermark(1, 1, 9, [notedAt(5)]));
    expect(await stored()).toEqual(watermark(1, 1, 9, [notedAt(5)]));
    expect(records.calls.map(({ action }) => action)).toEqual([
      ...["read", "create", "update", "read"],
    ]);
  });

  test("that the broker has lost is still known to the host that has folded so far", async () => {
    const host = await keeper();
    await host.raise(watermark(1, 1, 5));
    records.losesRequest = ({ action }) => action !== "read";
    await expect(host.raise(watermark(1, 1, 9))).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await stored()).toEqual(watermark(1, 1, 5));
    expect(await host.read()).toEqual(watermark(1, 1, 9, [notedAt(5)]));
    // A journal of a later generation no longer holds it, and another bucket is another job's.
    records.losesRequest = () => false;
    await (await keeper()).raise(watermark(2, 2, 1));
    expect(await host.read()).toEqual(watermark(2, 2, 1));
    records.madeAt = "later";
    expect(await host.read()).toBeUndefined();
  });

  test("of a bucket that was made anew says nothing, and is replaced by the next", async () => {
    const former = await keeper();
    await former.raise(watermark(3, 2, 90));
    records.madeAt = "later";
    expect(await stored()).toBeUndefined();
    const owner = await keeper();
    await owner.raise(watermark(1, 1, 2));
    expect(await stored()).toEqual(watermark(1, 1, 2));
  });

  test("repeats what earlier ones have noted, a bounded number, no further apart than they are old", async () => {
    const owner = await keeper();
    const step = 10;
    for (let seq = step; seq <= 600 * step; seq += step) {
      await owner.raise(watermark(1, 1, seq));
      const { earlier = [] } = owner.last ?? {};
      expect(earlier.length).toBe(Math.min(seq / step - 1, 16));
      const seqs = [0, ...earlier.map((noted) => noted.seq), seq];
      for (const [i, from] of seqs.slice(0, -1).entries()) {
        const to = seqs[i + 1] ?? 0;
        expect(to - from).toBeLessThanOrEqual(Math.max(step, seq - to));
      }
    }
    expect(await stored()).toEqual(owner.last);
    const { earlier = [] } = owner.last ?? {};
    expect(earlier).toEqual(earlier.map(({ seq }) => notedAt(seq)));
  });

  test("is not written when it would say nothing new", async () => {
    const owner = await keeper();
    await owner.raise(watermark(1, 2, 5));
    const calls = records.calls.length;
    await owner.raise(watermark(1, 2, 5));
    await owner.raise(watermark(1, 2, 4));
    await owner.raise(watermark(1, 1, 99));
    expect(records.calls).toHaveLength(calls);
  });

  test("of a new generation begins anew, however low", async () => {
    const owner = await keeper();
    await owner.raise(watermark(1, 1, 99));
    await owner.raise(watermark(1, 2, 1));
    expect(await stored()).toEqual(watermark(1, 2, 1));
  });

  test("is raised by a former owner until its successor writes, and not after that", async () => {
    const former = await keeper();
    await former.raise(watermark(1, 1, 5));
    const next = await keeper();
    await former.raise(watermark(1, 1, 6));
    await next.raise(watermark(2, 1, 8));
    await former.raise(watermark(1, 1, 9));
    expect(await stored()).toEqual(watermark(2, 1, 8, [notedAt(5), notedAt(6)]));
    const calls = records.calls.length;
    await former.raise(watermark(1, 1, 10));
    expect(records.calls).toHaveLength(calls);
  });

  test("stays where a former owner has raised it further than its successor has folded", async () => {
    const former = await keeper();
    const next = await keeper();
    await former.raise(watermark(1, 1, 9));
    await next.raise(watermark(2, 1, 8));
    expect(await stored()).toEqual(watermark(1, 1, 9));
    await next.raise(watermark(2, 1, 10));
    expect(await stored()).toEqual(watermark(2, 1, 10, [notedAt(9)]));
  });

  test("is raised further after a write whose answer was lost", async () => {
    const owner = await keeper();
    records.losesAnswer = ({ action }) => action === "create";
    await expect(owner.raise(watermark(1, 1, 5))).rejects.toMatchObject({ code: "TIMEOUT" });
    records.losesAnswer = () => false;
    await owner.raise(watermark(1, 1, 6));
    expect(await stored()).toEqual(watermark(1, 1, 6, [notedAt(5)]));
  });

  test("that others keep writing is given up", async () => {
    const owner = await keeper();
    let revision = (await records.create(KEY, record(watermark(1, 1, 1)))) ?? 0;
    const raced: MemoryBucket = new MemoryBucket();
    const busy = new WatermarkKeeper(
      {
        created: () => records.created(),
        read: async (key) => {
          const found = await records.read(key);
          revision = (await records.update(key, found?.value, found?.revision ?? 0)) ?? revision;
          return found;
        },
        create: (key, value) => raced.create(key, value),
        update: (key, value, at) => records.update(key, value, at),
      },
      SHARD,
    );
    await busy.read();
    await expect(busy.raise(watermark(1, 1, 5))).rejects.toMatchObject({ code: "BUSY" });
    expect(owner.last).toBeUndefined();
  });

  test("of which any byte has changed is an error, or no JSON", async () => {
    const bytes = Buffer.from(JSON.stringify(record(watermark(3, 2, 57, [notedAt(5)]))));
    let values = 0;
    for (let at = 0; at < 8 * bytes.length; at++) {
      const hurt = Buffer.from(bytes);
      hurt[at >> 3] = (hurt[at >> 3] ?? 0) ^ (1 << (at & 7));
      const value = parsed(hurt);
      if (value === undefined) continue;
      values += 1;
      expect(() => parseWatermark(value, KEY)).toThrow(PserverError);
    }
    expect(values).toBeGreaterThan(bytes.length);
  });

  test.each([
    [{ ...record(watermark(1, 1, 1)), format: 2 }, "BAD_VERSION"],
    [record(watermark(1, 1, 0)), "JOB_DAMAGED"],
    [record({ ...watermark(1, 1, 1), checksum: [-1, 0, 0] }), "JOB_DAMAGED"],
    [{ ...record(watermark(1, 1, 1)), term: 2 }, "JOB_DAMAGED"],
    [{ ...record(watermark(1, 1, 1)), bucket: "later" }, "JOB_DAMAGED"],
    [{ format: 1 }, "JOB_DAMAGED"],
  ])("that cannot be read as one is an error: %j", async (value, code) => {
    await records.create(KEY, value);
    await expect(stored()).rejects.toMatchObject({ code });
  });
});

/** What may happen, in any order. Owners are named by the term under which they have taken over. */
type Event =
  | { readonly type: "append" }
  | { readonly type: "fold"; readonly owner: number }
  | {
      readonly type: "watermark";
      readonly owner: number;
      readonly loses: "nothing" | "request" | "answer";
    }
  | { readonly type: "takeOver" }
  | { readonly type: "cut"; readonly records: number };

const owner = fc.nat({ max: 3 });
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ type: "append" as const }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant("fold" as const), owner }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("watermark" as const),
      owner,
      loses: fc.constantFrom("nothing", "request", "answer"),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ type: "takeOver" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("cut" as const),
      records: fc.integer({ min: 1, max: 6 }),
    }),
  },
);

/** A journal, its owners past and present, and their watermarks. */
class World {
  readonly records = new MemoryBucket();
  readonly #payloads: Uint8Array[] = [];
  readonly #owners: { readonly keeper: WatermarkKeeper; readonly folded: Uint8Array[] }[] = [];
  #made = 0;
  #hasCut = false;
  #last: Watermark | undefined;

  async step(event: Event): Promise<void> {
    if (event.type === "append") {
      this.#payloads.push(encodeMessage({ n: ++this.#made }));
    } else if (event.type === "cut") {
      this.#hasCut ||= this.#payloads.length > 0;
      this.#payloads.splice(-event.records);
    } else if (event.type === "takeOver") await this.#takeOver();
    else {
      const term = Math.max(1, this.#owners.length - event.owner);
      const owner = this.#owners[term - 1];
      if (owner === undefined) return;
      if (event.type === "watermark") await this.#watermark(term, owner, event.loses);
      else {
        const next = this.#payloads[owner.folded.length];
        if (next !== undefined) owner.folded.push(next);
      }
    }
  }

  async #takeOver(): Promise<void> {
    const keeper = new WatermarkKeeper(this.records, SHARD);
    const watermark = await keeper.read();
    const range = { firstSeq: 1, lastSeq: this.#payloads.length, missing: [], lost: undefined };
    const journal = {
      shard: SHARD,
      info: () => Promise.resolve({ created: "now", ...range, bytes: 1, bytesMax: 2 }),
      record: (_generation: number, seq: number) => {
        const payload = this.#payloads[seq - 1];
        return Promise.resolve(payload && { seq, subject: "", payload });
      },
    } as unknown as Journal;
    const shard = { seq: 0, lastCrc: 0 };
    const check = checkJournal(journal, {
      generation: 1,
      created: "now",
      shard,
      watermark: watermark,
    });
    const covered = this.#payloads[(watermark?.seq ?? 0) - 1];
    const isWhole =
      watermark === undefined || (covered && recordCrc(covered) === watermark.recordCrc);
    if (!this.#hasCut) expect(isWhole).toBe(true);
    if (isWhole) {
      await expect(check).resolves.toBeDefined();
      this.#owners.push({ keeper, folded: [] });
    } else {
      await expect(check).rejects.toMatchObject({
        code: expect.stringMatching(/^JOURNAL_(LOST|DAMAGED)$/),
      });
    }
  }

  async #watermark(
    term: number,
    { keeper, folded }: { keeper: WatermarkKeeper; folded: Uint8Array[] },
    loses: string,
  ): Promise<void> {
    const last = folded.at(-1);
    if (last === undefined) return;
    const isWrite = (call: { action: string }): boolean => call.action !== "read";
    this.records.losesRequest = (call) => loses === "request" && isWrite(call);
    this.records.losesAnswer = (call) => loses === "answer" && isWrite(call);
    const noted = notedAt(folded.length);
    const progress = { term, generation: 1, ...noted, recordCrc: recordCrc(last) };
    const before = this.#last;
    await keeper.raise(progress).catch((error: unknown) => {
      expect(error).toMatchObject({ code: "TIMEOUT" });
    });
    this.records.losesRequest = () => false;
    this.records.losesAnswer = () => false;
    this.#last = await new WatermarkKeeper(this.records, SHARD).read();
    if (this.#last?.term === before?.term && this.#last?.seq === before?.seq) return;
    // What was written is what this owner had folded, more than before, under no older term.
    expect(this.#last).toMatchObject(progress);
    expect(isLater(progress, before)).toBe(true);
    expect(term).toBeGreaterThanOrEqual(before?.term ?? 0);
  }
}

test("in any order of folding, marking, taking over and losing, no covered record is missed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { minLength: 5, maxLength: 60 }), async (events) => {
      const world = new World();
      await world.step({ type: "takeOver" });
      for (const event of events) await world.step(event);
      await world.step({ type: "takeOver" });
    }),
    { numRuns: 300 },
  );
});
