// Proves that a tensor written to a file of any kind is read back bit for bit, and that a file
// that does not fit the parameter is refused with what was expected and received.

import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  checkTensorTarget,
  decodeJsonTensor,
  type ExpectedTensor,
  encodeJsonTensor,
  readTensorFile,
  writeTensorFile,
} from "../../../src/cli/tensor-files.ts";
import { allocateData, bytesOf, DTYPES, type Dtype } from "../../../src/protocol/dtypes.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { type Tensor, tensorView } from "../../../src/protocol/tensor.ts";

const { signal } = new AbortController();

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "pserver-files-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const dtypes = Object.keys(DTYPES) as Dtype[];

/** The canonical NaN of half floats, of which an array has the bits. */
const NAN_BITS: Partial<Record<Dtype, number>> = { float16: 0x7e00, bfloat16: 0x7fc0 };

/** Tensors of every type with any bits in them; NaNs made canonical, as the server stores them. */
const tensors: fc.Arbitrary<Tensor> = fc
  .tuple(fc.constantFrom(...dtypes), fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }))
  .chain(([dtype, shape]) => {
    const elements = shape.reduce((product, size) => product * size, 1);
    const bytes = elements * DTYPES[dtype].bytes;
    return fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((bits) => {
      const data = allocateData(dtype, elements);
      tensorView({ dtype, shape, data }).set(bits);
      for (const [i, value] of toNumbers(dtype, data).entries()) {
        if (Number.isNaN(value)) data[i] = (NAN_BITS[dtype] ?? Number.NaN) as never;
        if (dtype === "bool") data[i] = (data[i] as number) & 1;
      }
      return { dtype, shape, data };
    });
  });

test.each([".npy", ".json", ".bin"])("reads what it wrote: %s", async (ending) => {
  const path = join(dir, `tensor${ending}`);
  await fc.assert(
    fc.asyncProperty(tensors, async (tensor) => {
      const written = await writeTensorFile(path, "w", tensor, { signal });
      expect((await readFile(path)).length).toBe(written);
      const back = await readTensorFile(path, { name: "w", ...tensor });
      expect(tensorView(back)).toEqual(tensorView(tensor));
    }),
    { numRuns: 60 },
  );
  expect((await readdir(dir)).filter((name) => name.includes("tmp"))).toEqual([]);
});

test("an interrupt leaves the old file, and nothing else", async () => {
  const home = await mkdtemp(join(dir, "interrupt-"));
  const path = join(home, "w.npy");
  await writeFile(path, "old");
  const tensor: Tensor = { dtype: "float32", shape: [4], data: new Float32Array(4) };
  const aborted = AbortSignal.abort(new Error("interrupted"));
  await expect(writeTensorFile(path, "w", tensor, { signal: aborted })).rejects.toThrow();
  expect(await readFile(path, "utf8")).toBe("old");
  expect(await readdir(home)).toEqual(["w.npy"]);
});

test("a link is followed, and a directory is no file", async () => {
  const home = await mkdtemp(join(dir, "link-"));
  await writeFile(join(home, "file.bin"), "old");
  await symlink("file.bin", join(home, "link.bin"));
  const tensor: Tensor = { dtype: "float32", shape: [1], data: Float32Array.of(1) };
  expect(await writeTensorFile(join(home, "link.bin"), "w", tensor, { signal })).toBe(4);
  expect((await lstat(join(home, "link.bin"))).isSymbolicLink()).toBe(true);
  expect((await readFile(join(home, "file.bin"))).length).toBe(4);
  await expect(writeTensorFile(home, "w", tensor, { signal })).rejects.toMatchObject({
    code: "IO",
  });
});

test("a directory that does not exist is named, before the values are asked for and after", async () => {
  const home = await mkdtemp(join(dir, "absent-"));
  const path = join(home, "sub", "x.npy");
  const tensor: Tensor = { dtype: "float32", shape: [1], data: Float32Array.of(1) };
  const message = `cannot write ${path}: the directory ${join(home, "sub")} does not exist`;
  await expect(checkTensorTarget(path)).rejects.toMatchObject({ code: "IO", message });
  const writing = writeTensorFile(path, "w", tensor, { signal });
  await expect(writing).rejects.toMatchObject({ code: "IO", message });
  expect(await readdir(home)).toEqual([]);
});

describe("an array of another program", () => {
  const npy = (descr: string, isFortran: boolean, shape: string, elements: Uint8Array): Buffer => {
    const order = isFortran ? "True" : "False";
    const text = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}}\n`;
    const prefix = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, text.length, 0]);
    return Buffer.concat([prefix, Buffer.from(text), elements]);
  };
  const read = async (bytes: Buffer, expected: ExpectedTensor): Promise<Tensor> => {
    await writeFile(join(dir, "w.npy"), bytes);
    return await readTensorFile(join(dir, "w.npy"), expected);
  };
  const w = { name: "w", dtype: "float32", shape: [2, 3] } as const;

  test("in Fortran order", async () => {
    const elements = bytesOf(Float32Array.of(1, 4, 2, 5, 3, 6));
    const { data } = await read(npy("<f4", true, "(2, 3)", elements), w);
    expect(data).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6));
  });

  test("of half precision, big-endian", async () => {
    const elements = Buffer.from("3c00c0000000fc007bff0001", "hex");
    const { data } = await read(npy(">f2", false, "(2, 3)", elements), { ...w, dtype: "float16" });
    expect(data).toEqual(Uint16Array.of(0x3c00, 0xc000, 0, 0xfc00, 0x7bff, 1));
  });

  test("of a type that the parameter has no values for, or cut short", async () => {
    const elements = new Uint8Array(6);
    await expect(read(npy("|b1", false, "(2, 3)", elements), w)).rejects.toMatchObject({
      code: "BAD_DTYPE",
      message: "w: dtype: expected float32; received bool",
    });
    await expect(read(npy("|S1", false, "(2, 3)", elements), w)).rejects.toMatchObject({
      code: "BAD_DTYPE",
      message: "w: dtype: expected float32; received |S1",
    });
    const half = { ...w, dtype: "float16" } as const;
    await expect(read(npy("<f2", false, "(2, 3)", elements), half)).rejects.toMatchObject({
      code: "BAD_LENGTH",
      message: "w: bytes: expected 12; received 6",
    });
  });
});

describe("a file that does not fit", () => {
  const expected = { name: "w", dtype: "float32", shape: [2, 3] } as const;
  const read = async (name: string, tensor: Tensor): Promise<unknown> => {
    await writeTensorFile(join(dir, name), "w", tensor, { signal });
    return readTensorFile(join(dir, name), expected).catch((error: unknown) => error);
  };

  test("by its shape", async () => {
    const tensor: Tensor = { dtype: "float32", shape: [3, 2], data: new Float32Array(6) };
    expect(await read("shape.npy", tensor)).toMatchObject({
      code: "BAD_SHAPE",
      message: "w: shape: expected [2,3]; received [3,2]",
    });
    expect(await read("shape.json", tensor)).toMatchObject({ code: "BAD_SHAPE" });
  });

  test("by its type", async () => {
    const tensor: Tensor = { dtype: "int32", shape: [2, 3], data: new Int32Array(6) };
    expect(await read("type.npy", tensor)).toMatchObject({
      code: "BAD_DTYPE",
      message: "w: dtype: expected float32; received int32",
    });
    expect(await read("type.json", tensor)).toMatchObject({ code: "BAD_DTYPE" });
  });

  test("by its length", async () => {
    const tensor: Tensor = { dtype: "float32", shape: [5], data: new Float32Array(5) };
    expect(await read("length.bin", tensor)).toMatchObject({
      code: "BAD_LENGTH",
      message: "w: bytes: expected 24; received 20",
    });
    await writeFile(join(dir, "cut.npy"), "\x93NUMPY");
    await expect(readTensorFile(join(dir, "cut.npy"), expected)).rejects.toMatchObject({
      code: "BAD_FILE",
    });
  });

  test("because it is no JSON, or not there", async () => {
    await writeFile(join(dir, "text.json"), "[1, 2");
    await expect(readTensorFile(join(dir, "text.json"), expected)).rejects.toMatchObject({
      code: "BAD_FILE",
    });
    await expect(readTensorFile(join(dir, "none.npy"), expected)).rejects.toMatchObject({
      code: "IO",
    });
  });
});

describe("JSON", () => {
  const w = { name: "w", dtype: "float32", shape: [2, 2] } as const;
  const whole = { name: "n", dtype: "int32", shape: [2] } as const;
  const wide = { name: "n", dtype: "int64", shape: [2] } as const;

  test("may be flat, nested or the printed object", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    for (const value of [
      [1, 2, 3, 4],
      [
        [1, 2],
        [3, 4],
      ],
      { values: [1, 2, 3, 4] },
      JSON.parse([...encodeJsonTensor("w", { ...w, data })].join("")),
    ]) {
      expect(decodeJsonTensor(value, w).data).toEqual(data);
    }
    expect(decodeJsonTensor(2.5, { ...w, shape: [] }).data).toEqual(Float32Array.of(2.5));
  });

  test.each([
    ["too few", [1, 2, 3], w, "BAD_LENGTH"],
    ["uneven rows", [[1, 2, 3], [4]], w, "BAD_LENGTH"],
    ["too flat", [[1, 2], 3], w, "BAD_SHAPE"],
    [
      "too many rows",
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      w,
      "BAD_SHAPE",
    ],
    ["another shape", { shape: [4], values: [1, 2, 3, 4] }, w, "BAD_SHAPE"],
    ["no values", { dtype: "float32" }, w, "BAD_VALUE"],
    ["text", ["a", 1, 2, 3], w, "BAD_VALUE"],
    ["null", [null, 1, 2, 3], w, "BAD_VALUE"],
    ["a float that overflows", [1e39, 1, 2, 3], w, "BAD_VALUE"],
    ["a fraction", [1.5, 1], whole, "BAD_VALUE"],
    ["an integer that wraps", [2 ** 31, 1], whole, "BAD_VALUE"],
    ["a 64-bit integer that was rounded", [2 ** 60, 1], wide, "BAD_VALUE"],
    ["a 64-bit integer that wraps", [String(2n ** 63n), 1], wide, "BAD_VALUE"],
  ])("refuses %s", (_what, value, expected, code) => {
    expect(() => decodeJsonTensor(value, expected)).toThrow(expect.objectContaining({ code }));
  });

  test("holds 64-bit integers as strings, and takes safe ones as numbers", () => {
    const data = BigInt64Array.of(-(2n ** 63n), 5n);
    const text = [...encodeJsonTensor("n", { ...wide, data })].join("");
    expect(text).toContain('"-9223372036854775808"');
    expect(decodeJsonTensor(JSON.parse(text), wide).data).toEqual(data);
    expect(decodeJsonTensor([1, "2"], wide).data).toEqual(BigInt64Array.of(1n, 2n));
  });
});

test("an ending that says something else is refused, and nothing is written", async () => {
  const home = await mkdtemp(join(dir, "endings-"));
  const tensor: Tensor = { dtype: "float32", shape: [1], data: Float32Array.of(1) };
  for (const name of ["w.pt", "w.npz", "w.safetensors", "w."]) {
    const path = join(home, name);
    const expected = { code: "BAD_VALUE", message: expect.stringContaining(".npy, .json, .bin") };
    await expect(writeTensorFile(path, "w", tensor, { signal })).rejects.toMatchObject(expected);
    expect(await readdir(home)).toEqual([]);
    await writeFile(path, new Uint8Array(4));
    await expect(readTensorFile(path, { name: "w", ...tensor })).rejects.toMatchObject(expected);
    await rm(path);
  }
  for (const name of ["w", "w.RAW", "w.bin", ".w"]) {
    const path = join(home, name);
    expect(await writeTensorFile(path, "w", tensor, { signal })).toBe(4);
  }
});
