// Proves that files of the reference implementations are read as they were meant: fixtures made once
// by numpy, safetensors and Python's tarfile (make_fixtures.py beside them). Tensors count 0, 1, 2, … in C
// order, or hold the first and last values of their type; what no parameter can hold is left out by name.

import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import { readTensor } from "../../src/cli/tensor-files.ts";
import { convertElements } from "../../src/model-files/element-types.ts";
import { openModel } from "../../src/model-files/index.ts";
import { allocateData, bytesOf, type Dtype, type TensorData } from "../../src/protocol/dtypes.ts";
import { toHalfFloats } from "../../src/protocol/encoding/half-floats.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { codeOf, contents, joinChunks, load, withDirectory } from "./sample-model.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

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

/** Values that no float16 of another bit pattern has: signs of zeros and small numbers count. */
const HALVES = [0, -0, 1.5, -65504, 2 ** -24, 2 ** -14 - 2 ** -24, Infinity, -Infinity, NaN];

const NARROW: Readonly<Record<string, TensorData>> = {
  half: toHalfFloats("float16", Float32Array.from(HALVES)),
  bool: Uint8Array.of(1, 0),
  uint8: Uint8Array.of(0, 255),
  int8: Int8Array.of(-128, 127),
  uint16: Int32Array.of(0, 65535),
  int16: Int32Array.of(-32768, 32767),
};

/** The values of tensors of one dimension, by name, and how each was converted. */
async function valuesIn(file: string) {
  const model = await openModel(join(FIXTURES, file));
  try {
    const values = new Map<string, TensorData>();
    for (const tensor of model.tensors) {
      // The command leaves out what has no elements.
      if (tensor.header.shape.includes(0)) continue;
      values.set(tensor.header.name, (await readTensor(tensor)).data);
    }
    const conversions = model.tensors.map(({ header, conversion }) => [header.name, conversion]);
    return {
      values,
      skipped: model.skipped,
      dtypes: new Map(model.tensors.map(({ header }) => [header.name, header.dtype])),
      conversions: new Map(conversions as [string, string][]),
    };
  } finally {
    await model.close();
  }
}

describe("reads every type that a parameter has, converts others, and leaves out what it cannot:", () => {
  test.each(["narrow.safetensors", "narrow.npz"])("%s", async (file) => {
    const { values, skipped, conversions, dtypes } = await valuesIn(file);
    for (const [name, data] of Object.entries(NARROW))
      expect([name, values.get(name)]).toEqual([name, data]);
    expect(dtypes.get("half")).toBe("float16");
    expect(dtypes.get("bool")).toBe("bool");
    expect(values.get("kept")).toEqual(Float32Array.of(0, 1));
    expect(skipped).toEqual([{ name: "complex", type: file.endsWith(".npz") ? "<c8" : "C64" }]);
    expect(conversions.get("int16")).toBe("int16 as int32");
    for (const name of ["half", "int8", "kept"]) expect(conversions.get(name)).toBeUndefined();
    if (file.endsWith(".npz")) return;
    expect(dtypes.get("bfloat16")).toBe("bfloat16");
    expect(values.get("bfloat16")).toEqual(Uint16Array.of(0x3fc0, 0xff62));
  });

  test("bfloat16.npz, as numpy writes that of ml_dtypes", async () => {
    const { values, skipped, dtypes } = await valuesIn("bfloat16.npz");
    const bits = Uint16Array.of(0x3fc0, 0xff62, 0, 0x8000, 0x7f80, 1);
    for (const name of ["plain", "fortran"]) {
      expect([name, dtypes.get(name), values.get(name)]).toEqual([name, "bfloat16", bits]);
    }
    const type = "|V2: bytes without a type; bfloat16 must be saved with the dtype of ml_dtypes";
    expect(skipped).toEqual([{ name: "untyped", type }]);
  });

  test("big-endian elements and Fortran order", async () => {
    const { values, skipped } = await valuesIn("other-orders.npz");
    for (const [name, data] of Object.entries(NARROW)) {
      expect([name, values.get(`big-${name}`)]).toEqual([name, data]);
    }
    const { tensors } = await load(join(FIXTURES, "other-orders.npz"));
    for (const [name, dtype, shape] of [
      ...SIX.slice(0, 6).map(([name, ...rest]) => [`big-${name}`, ...rest] as const),
      ["fortran-float32", "float32", [2, 3, 4]],
      ["fortran-int64", "int64", [2, 3, 4]],
      ["fortran-int16", "int32", [2, 3, 4]],
      ["fortran-big", "float64", [3, 1, 2]],
      ["fortran-empty", "float32", [3, 0, 2]],
    ] as const) {
      expect(tensors.get(name)).toEqual(counting(name, dtype, shape));
    }
    const left = [
      ["big-complex", ">c8"],
      ["text", "<U1"],
      ["object", "|O"],
    ];
    expect(skipped.map(({ name, type }) => [name, type])).toEqual(left);
  });

  test.each([
    ["fortran.npz", "float32", [2, 3]],
    ["big-endian.npz", "float32", [2]],
  ] as const)("%s", async (file, dtype, shape) => {
    expect((await load(join(FIXTURES, file))).tensors).toEqual(expected([["w", dtype, shape]]));
  });

  test.each(["half.npz", "half.safetensors"])("%s", async (file) => {
    const { values } = await valuesIn(file);
    expect(values.get("w")).toEqual(Uint16Array.of(0, 0x3c00));
  });

  test("structured.npz", async () => {
    const { values, skipped } = await valuesIn("structured.npz");
    expect(values.size).toBe(0);
    expect(skipped).toEqual([{ name: "w", type: '[["a","<f4"],["b","<i4",[2]]]' }]);
  });

  test("elements that end in another chunk than they begin in", async () => {
    const bytes = Buffer.from([0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]);
    async function* singly() {
      for (const byte of bytes) yield Uint8Array.of(byte);
    }
    const stored = { name: "float32", isLittleEndian: false } as const;
    const parts = await joinChunks(convertElements(singly(), stored));
    expect(new Float32Array(parts.buffer)).toEqual(Float32Array.of(1, 2));
  });
});

describe("an archive packed by gzip", () => {
  const PACKED = join(FIXTURES, "packed.tar.gz");

  test.each(["m.tar.gz", "m.TGZ", "m.tar"])(
    "is read as %s, and nothing of it stays",
    async (name) => {
      await withDirectory(async (directory) => {
        const temporary = join(directory, "tmp");
        await mkdir(temporary);
        vi.stubEnv("TMPDIR", temporary);
        await copyFile(PACKED, join(directory, name));
        const model = await openModel(join(directory, name));
        expect(await readdir(temporary)).toEqual([]);
        const plain = await load(join(FIXTURES, "gnu.tar"));
        expect(await contents(model)).toEqual(plain.tensors);
        // Tensors are read again, each by itself.
        expect(await contents(model)).toEqual(plain.tensors);
        await model.close();
      });
    },
  );

  test("is refused if it is cut short, changed or no archive", async () => {
    const bytes = await readFile(PACKED);
    await withDirectory(async (directory) => {
      const path = join(directory, "m.tar.gz");
      for (let length = bytes.length - 1; length >= 0; length -= 7) {
        await writeFile(path, bytes.subarray(0, length));
        expect([length, await codeOf(openModel(path))]).toEqual([length, "BAD_FILE"]);
      }
      for (let at = bytes.length - 8; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ 1;
        await writeFile(path, changed);
        expect([at, await codeOf(openModel(path))]).toEqual([at, "BAD_FILE"]);
      }
      await writeFile(path, gzipSync("no archive"));
      await expect(openModel(path)).rejects.toThrow(path);
    });
  });

  test("needs room for its unpacked bytes, and stops at a signal", async () => {
    vi.stubEnv("TMPDIR", "/nonexistent");
    expect(await codeOf(openModel(PACKED))).toBe("IO");
    vi.unstubAllEnvs();
    const reason = new PserverError("ABORTED", "enough");
    await expect(openModel(PACKED, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
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
