// Proves that files of the reference implementations are read as they were meant: fixtures made once
// by numpy, safetensors and Python's tarfile (make_fixtures.py beside them). Every tensor counts
// 0, 1, 2, … in C order; what no parameter can be is refused by a typed error.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openModel } from "../../src/model-files/index.ts";
import { allocateData, bytesOf, type Dtype } from "../../src/protocol/dtypes.ts";
import { codeOf, load, withDirectory } from "./sample-model.ts";

const FIXTURES = join(import.meta.dirname, "..", "fixtures", "model-files");

const SIX: readonly (readonly [string, Dtype, readonly number[]])[] = [
  ["int32", "int32", [3]],
  ["uint32", "uint32", [2, 2]],
  ["int64", "int64", [1, 2, 3]],
  ["uint64", "uint64", [1]],
  ["float32", "float32", [2, 5]],
  ["float64", "float64", [4]],
  ["scalar", "float32", []],
  ["empty", "float32", [0, 3]],
  ["größe/層.w", "float32", [2]],
];

function counting(name: string, dtype: Dtype, shape: readonly number[]) {
  const elements = shape.reduce((product, dimension) => product * dimension, 1);
  const data = allocateData(dtype, elements);
  for (let i = 0; i < elements; i++) {
    data[i] = data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(i) : i;
  }
  return { header: { name, dtype, shape }, bytes: bytesOf(data) };
}

function expected(tensors: readonly (readonly [string, Dtype, readonly number[]])[]) {
  return new Map(tensors.map(([name, dtype, shape]) => [name, counting(name, dtype, shape)]));
}

describe("reads", () => {
  test.each(["six-dtypes.safetensors", "stored.npz", "deflated.npz"])("%s", async (file) => {
    const { tensors, metadata } = await load(join(FIXTURES, file));
    expect(tensors).toEqual(expected(SIX));
    expect(metadata).toEqual(file.endsWith(".npz") ? {} : { "made by": "numpy", größe: "層" });
  });

  test("npy headers of versions 1, 2 and 3", async () => {
    const { tensors } = await load(join(FIXTURES, "npy-versions.npz"));
    expect(tensors).toEqual(expected(["v1", "v2", "v3"].map((name) => [name, "float64", [2, 2]])));
  });

  test.each(["ustar-pax.tar", "gnu.tar"])("%s", async (file) => {
    const { tensors } = await load(join(FIXTURES, file));
    expect(tensors).toEqual(
      expected([
        ["___fc_layer_0__.w0", "float32", [2, 3]],
        ["___fc_layer_0__.wbias", "float32", [1, 3]],
        ["l".repeat(120), "float32", [2]],
        ["größe", "float32", [1]],
      ]),
    );
  });
});

test.each([
  ["fortran.npz", "BAD_FILE", "C order"],
  ["big-endian.npz", "BAD_DTYPE", ">f4"],
  ["half.npz", "BAD_DTYPE", "<f2"],
  ["structured.npz", "BAD_DTYPE", '"b"'],
  ["half.safetensors", "BAD_DTYPE", "F16"],
])("refuses %s with %s, naming %s", async (file, code, named) => {
  const opened = openModel(join(FIXTURES, file));
  expect(await codeOf(opened)).toBe(code);
  await expect(opened).rejects.toThrow(named);
  await expect(opened).rejects.toThrow(file);
});

describe("reads what other programs make of such files:", () => {
  test.each(["repacked-dot.tar", "repacked-directory.tar"])("%s, packed again", async (file) => {
    const { tensors } = await load(join(FIXTURES, file));
    expect(tensors).toEqual(
      expected([
        ["___fc_layer_0__.w0", "float32", [2, 3]],
        ["___fc_layer_0__.wbias", "float32", [1, 3]],
      ]),
    );
  });

  test("safetensors whose metadata are null, and no tensor that is", async () => {
    await withDirectory(async (directory) => {
      const path = join(directory, "null.safetensors");
      const write = async (key: string): Promise<void> => {
        const entry = { dtype: "F32", shape: [1], data_offsets: [0, 4] };
        const header = Buffer.from(JSON.stringify({ [key]: null, w: entry }));
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(header.length));
        await writeFile(path, Buffer.concat([length, header, Buffer.alloc(4)]));
      };
      await write("__metadata__");
      const { tensors, metadata } = await load(path);
      expect([[...tensors.keys()], metadata]).toEqual([["w"], {}]);
      await write("v");
      expect(await codeOf(openModel(path))).toBe("BAD_FILE");
    });
  });

  test("an archive with a link among its members is refused", async () => {
    await withDirectory(async (directory) => {
      const bytes = await readFile(join(FIXTURES, "repacked-dot.tar"));
      const at = bytes.indexOf("5", 156);
      expect(at).toBe(156);
      // The type of the first member, and its checksum with it: "2" is a symbolic link.
      bytes[156] = 0x32;
      const sum = Number.parseInt(bytes.toString("latin1", 148, 154), 8) - 3;
      bytes.write(sum.toString(8).padStart(6, "0"), 148, "latin1");
      const path = join(directory, "link.tar");
      await writeFile(path, bytes);
      expect(await codeOf(openModel(path))).toBe("BAD_FILE");
    });
  });
});
