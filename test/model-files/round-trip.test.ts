// Proves that every format gives back what was saved: names, dtypes, shapes, metadata and bytes, for
// all element types, for scalars, and for random models with names from all of Unicode. Chunks come
// through one reused buffer of 7 bytes, so elements are split and no chunk may be kept.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openModel } from "../../src/model-files/index.ts";
import { escapeName } from "../../src/protocol/names.ts";
import type { SampleTensor } from "./sample-model.ts";
import {
  ALL_DTYPES,
  ALL_PATHS,
  codeOf,
  contents,
  joinChunks,
  load,
  sampleTensor,
  save,
  withDirectory,
} from "./sample-model.ts";

const METADATA = { "made by": "a test", größe: "層", ["__proto__"]: "kept" };

function byName(tensors: readonly SampleTensor[]): Map<string, SampleTensor> {
  return new Map(tensors.map((tensor) => [tensor.header.name, tensor]));
}

/** Names a parameter can have, but for those one format or another must refuse. */
const names = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 40 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 16 }),
  )
  .filter((name) => {
    if (!name.isWellFormed()) return false;
    if (name === "__metadata__" || name.endsWith(".protobuf") || /:sparse-\d+$/.test(name))
      return false;
    return Buffer.byteLength(name) * 3 <= 200 && escapeName(name).length <= 200;
  });

const tensors = fc.uniqueArray(
  fc
    .tuple(
      names,
      fc.constantFrom(...ALL_DTYPES),
      fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
    )
    .map(([name, dtype, shape]) => sampleTensor(name, dtype, shape)),
  { minLength: 1, maxLength: 6, selector: (tensor) => tensor.header.name },
);

describe.each(ALL_PATHS)("%s", (path) => {
  test("keeps all six dtypes, scalars, metadata and odd names", async () => {
    const saved = [
      ...ALL_DTYPES.map((dtype) => sampleTensor(dtype, dtype, [3, 2])),
      ...ALL_DTYPES.map((dtype) => sampleTensor(`scalar/${dtype}`, dtype, [])),
      ...[
        "___fc_layer_0__.w0",
        "a/b/../c",
        "größe 層 🙂",
        "__proto__",
        ".",
        "..",
        "../x",
        "=2E=2E=2Fx",
        "/etc/passwd",
        "C:/x",
        "a\\b",
        "a//b",
        "a/",
        "nul\0 esc\u001b[2J\n",
        "manifest.json",
      ].map((name) => sampleTensor(name, "float32", [2])),
      sampleTensor("l".repeat(150), "float64", [1]),
      sampleTensor("ünicode".repeat(8), "int64", [1, 1]),
    ];
    await withDirectory(async (directory) => {
      const { file, bytes } = await save(directory, path, saved, METADATA);
      const { tensors: found, metadata } = await load(file);
      expect(found).toEqual(byName(saved));
      expect(Object.entries(metadata)).toEqual(Object.entries(METADATA));
      const sizes = (await readdir(file, { withFileTypes: true }).catch(() => [])).map(
        async (entry) => (await readFile(join(file, entry.name))).byteLength,
      );
      const onDisk =
        sizes.length > 0 ? await Promise.all(sizes) : [(await readFile(file)).byteLength];
      expect(bytes).toBe(onDisk.reduce((sum, size) => sum + size, 0));
    });
  });

  test("keeps random models", async () => {
    await withDirectory(async (directory) => {
      await fc.assert(
        fc.asyncProperty(tensors, fc.integer({ min: 1, max: 64 }), async (saved, chunkBytes) => {
          const { file } = await save(directory, path, saved, {}, chunkBytes);
          expect((await load(file)).tensors).toEqual(byName(saved));
        }),
        { numRuns: 60 },
      );
    });
  });

  test("makes equal files of equal models, and reads tensors in any order, twice and in part", async () => {
    const saved = [sampleTensor("a", "float32", [300_000]), sampleTensor("b", "int64", [3])];
    await withDirectory(async (directory) => {
      const first = await save(directory, path, saved, METADATA, 65_536);
      const second = await save(directory, `again/${path}`, saved, METADATA, 1000);
      expect(second.bytes).toBe(first.bytes);
      if (path !== "m")
        expect(Buffer.compare(await readFile(second.file), await readFile(first.file))).toBe(0);
      const model = await openModel(first.file);
      for (const tensor of [...model.tensors].reverse()) {
        for await (const chunk of tensor.chunks()) {
          expect(chunk.byteLength).toBeGreaterThan(0);
          break;
        }
      }
      const [a, b] = model.tensors.map((tensor) => joinChunks(tensor.chunks()));
      await Promise.all([a, b]);
      for (const [name, { bytes }] of await contents(model)) {
        // Not toEqual, which takes seconds for a megabyte.
        expect([
          name,
          Buffer.compare(bytes, byName(saved).get(name)?.bytes ?? Buffer.of()),
        ]).toEqual([name, 0]);
      }
      await model.close();
      await model.close();
    });
  });

  test("merges sparse shards into one tensor", async () => {
    const shards = [2, 0, 1].map((i) => sampleTensor(`emb:sparse-${i}`, "float32", [i + 1, 3]));
    const other = sampleTensor("w", "int32", [2]);
    await withDirectory(async (directory) => {
      const { file } = await save(directory, path, [...shards, other]);
      const { tensors: found } = await load(file);
      const inOrder = [1, 2, 0].map((place) => shards[place]?.bytes ?? new Uint8Array());
      expect([...found.keys()].sort()).toEqual(["emb", "w"]);
      expect(found.get("emb")).toEqual({
        header: { name: "emb", dtype: "float32", shape: [6, 3] },
        bytes: new Uint8Array(Buffer.concat(inOrder)),
      });
    });
  });
});

test("names that a format cannot hold are refused, and nothing is written", async () => {
  const refused = [
    ["m.safetensors", "__metadata__"],
    ["m.tar", "w.protobuf"],
  ] as const;
  await withDirectory(async (directory) => {
    for (const [path, name] of refused) {
      const saved = [sampleTensor(name, "float32", [1])];
      expect(await codeOf(save(directory, path, saved))).toBe("BAD_NAME");
    }
    expect(await readdir(directory)).toEqual([]);
  });
});

test("safetensors data is aligned to the size of its elements", async () => {
  const saved = [sampleTensor("a", "float32", [3]), sampleTensor("b", "float64", [1])];
  await withDirectory(async (directory) => {
    const bytes = await readFile((await save(directory, "m.safetensors", saved)).file);
    const headerBytes = Number(bytes.readBigUInt64LE(0));
    expect(headerBytes % 8).toBe(0);
    const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
    expect(header["b"].data_offsets).toEqual([0, 8]);
    expect(header["a"].data_offsets).toEqual([8, 20]);
  });
});

test("a file that was closed gives no more chunks", async () => {
  await withDirectory(async (directory) => {
    const { file } = await save(directory, "m.npz", [sampleTensor("a", "float32", [3])]);
    const model = await openModel(file);
    await model.close();
    for (const tensor of model.tensors) {
      expect(await codeOf(joinChunks(tensor.chunks()))).toBe("CLOSED");
    }
    expect(model.tensors).toHaveLength(1);
  });
});
