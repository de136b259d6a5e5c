// Proves that a host's catalog has what was written before it was asked for, each record parsed once, whoever
// wrote it and in whatever order it learns of it.
import { expect, test } from "vitest";
import { ParameterCatalog } from "../../../src/actors/lifecycle/declared-ledger.ts";
import { UNINITIALIZED } from "../../../src/actors/lifecycle/machine.ts";
import { type Parameter, toParameterEntry } from "../../../src/actors/lifecycle/parameter.ts";

import { PserverError, toConfig } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

function parameter(name: string, revision = 0): Parameter {
  const layout = { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 1 };
  return {
    declaration: { name, dtype: "float32", shape: [1], config: toConfig({}) },
    ...{ layout, firstNumber: 1, blocksMax: 1, jobEpoch: 1, revision },
    lifecycle: {
      ...UNINITIALIZED,
      context: { ...UNINITIALIZED.context, epoch: 1, trainer: "a", session: 1 },
    },
  };
}

async function write(bucket: MemoryBucket, name: string): Promise<number> {
  const key = `param.${name}`;
  const known = await bucket.read(key);
  const record = toParameterEntry(parameter(name));
  const revision =
    known === undefined
      ? await bucket.create(key, record)
      : await bucket.update(key, record, known.revision);
  return revision ?? 0;
}

function catalogOf(bucket: MemoryBucket): { catalog: ParameterCatalog; noted: string[] } {
  const noted: string[] = [];
  const catalog = new ParameterCatalog(bucket, ({ declaration, revision }) => {
    noted.push(`${declaration.name}@${revision}`);
  });
  return { catalog, noted };
}

test("what others wrote is read once, and again when it has changed", async () => {
  const bucket = new MemoryBucket();
  const { catalog, noted } = catalogOf(bucket);
  await write(bucket, "a");
  await write(bucket, "b");
  await catalog.refresh();
  await catalog.refresh();
  await bucket.create("job", {});
  await write(bucket, "a");
  await catalog.refresh();
  expect(noted).toEqual(["a@1", "b@2", "a@4"]);
  expect(catalog.get("a")?.revision).toBe(4);
  expect(catalog.get("c")).toBeUndefined();
});

test("an older record than the one known changes nothing", async () => {
  const bucket = new MemoryBucket();
  const { catalog, noted } = catalogOf(bucket);
  await write(bucket, "a");
  catalog.note([parameter("a", 7)]);
  await catalog.refresh();
  catalog.note([parameter("a", 3)]);
  expect(noted).toEqual(["a@7"]);
});

test("a refresh reads what was written before it, though another one was under way", async () => {
  let between = (): Promise<void> => Promise.resolve();
  const bucket = new MemoryBucket({ between: () => between() });
  const { catalog } = catalogOf(bucket);
  let release = (): void => undefined;
  between = () =>
    new Promise((resolve) => {
      release = resolve;
    });
  const first = catalog.refresh();
  await Promise.resolve();
  between = () => Promise.resolve();
  await write(bucket, "late");
  const second = catalog.refresh();
  expect(catalog.refresh()).toBe(second);
  release();
  await Promise.all([first, second]);
  expect(catalog.get("late")?.revision).toBe(1);
});

test("after a failed refresh the next one continues", async () => {
  const bucket = new MemoryBucket();
  const { catalog, noted } = catalogOf(bucket);
  await write(bucket, "a");
  bucket.losesAnswer = () => true;
  await expect(catalog.refresh()).rejects.toThrow(PserverError);
  bucket.losesAnswer = () => false;
  await catalog.refresh();
  expect(noted).toEqual(["a@1"]);
});

test("pages are in order of code units, with names that were added after the last page", async () => {
  const { catalog } = catalogOf(new MemoryBucket());
  const pageOf = (after: string, limit: number): { names: string[]; more: boolean } => {
    const { parameters, more } = catalog.page(after, limit);
    return { names: parameters.map(({ declaration }) => declaration.name), more };
  };
  expect(pageOf("", 2)).toEqual({ names: [], more: false });
  catalog.note(["b", "a", "Z", "\u00e9"].map((name) => parameter(name, 1)));
  expect(pageOf("", 2)).toEqual({ names: ["Z", "a"], more: true });
  catalog.note([parameter("ab", 2)]);
  expect(pageOf("a", 2)).toEqual({ names: ["ab", "b"], more: true });
  expect(pageOf("b", 2)).toEqual({ names: ["\u00e9"], more: false });
});
