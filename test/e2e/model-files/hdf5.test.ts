// Proves that h5py reads what is saved as HDF5, bit by bit, that what h5py writes is read, and that a
// hostile file is refused with a typed error, whatever it leads to: other files above all.
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { DTYPES, type Dtype, isDtype } from "../../../src/protocol/dtypes.ts";
import { runPython } from "../../support/run-python.ts";
import { SmallDisk } from "../../support/small-disk.ts";

type ModelFiles = typeof import("../../../src/model-files/index.ts");

// The compiled ones: the library runs in a thread, which needs a compiled entry point.
const { openModel, saveModel }: ModelFiles = await import(
  join(packageRoot(), "build/programs/src/model-files/index.js")
);

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-hdf5-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

interface Tensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

function tensor(name: string, dtype: Dtype, shape: readonly number[]): Tensor {
  const elements = shape.reduce((product, dimension) => product * dimension, 1);
  const bytes = new Uint8Array(elements * DTYPES[dtype].bytes);
  // No exponent of a float is all ones: a NaN may change on its way through Python.
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >> 8) + name.length) % 126;
  return { name, dtype, shape, bytes };
}

async function save(path: string, tensors: readonly Tensor[], chunkBytes = 70_001) {
  const byName = new Map(tensors.map(({ name, bytes }) => [name, bytes]));
  return await saveModel({
    directory: home,
    path,
    tensors,
    metadata: { job: "größe", nul: "a\0b" },
    chunks: async function* ({ name }) {
      const bytes = byName.get(name) ?? new Uint8Array(0);
      const buffer = new Uint8Array(chunkBytes);
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        const part = bytes.subarray(at, at + chunkBytes);
        buffer.set(part);
        yield buffer.subarray(0, part.length);
      }
    },
  });
}

async function load(path: string) {
  const model = await openModel(path);
  try {
    const tensors: Tensor[] = [];
    for (const source of model.tensors) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of source.chunks()) chunks.push(chunk);
      tensors.push({ ...source.header, bytes: new Uint8Array(Buffer.concat(chunks)) });
    }
    return { tensors, metadata: model.metadata };
  } finally {
    await model.close();
  }
}

/** What tensors are, with a digest of their bytes: to compare millions of these takes minutes. */
function digests(tensors: readonly Tensor[]): ReadonlyMap<string, unknown> {
  return new Map(
    tensors
      .map(({ bytes, ...header }) => [header.name, { ...header, digest: digest(bytes) }] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const DTYPE_NAMES = Object.keys(DTYPES).filter(isDtype);
const MODEL = [
  ...DTYPE_NAMES.map((dtype) => tensor(`types/${dtype}`, dtype, [3, 2])),
  ...DTYPE_NAMES.map((dtype) => tensor(`scalars/${dtype}`, dtype, [])),
  ...[
    "a",
    "a/b",
    "a/b/c",
    "../x",
    ".",
    "/etc/passwd",
    "x//y",
    "y/",
    "a=2Fb",
    "nul\0",
    "größe 層🙂",
  ].map((name) => tensor(name, "float32", [2])),
  tensor("l".repeat(200), "int64", [1]),
  tensor("none", "float32", [0, 3]),
  tensor("large/rows", "float32", [700, 1_000]),
  tensor("large/long", "uint64", [400_001]),
  tensor("large/row", "float64", [2, 3, 131_073]),
  tensor("large/pairs", "int32", [300_000, 1, 2]),
];

const READ = `
import h5py, hashlib, json, sys
import numpy as np
found = {}
with h5py.File(sys.argv[1], "r") as file:
    def visit(path, item):
        if isinstance(item, h5py.Dataset):
            assert item.maxshape == item.shape
            name = json.loads(item.attrs["PSERVER.name"]) if "PSERVER.name" in item.attrs else path
            value = item[()]
            found[name] = [path, str(item.dtype), list(item.shape), hashlib.sha256(np.asarray(value).tobytes()).hexdigest()]
    file.visititems(visit)
    print(json.dumps([found, json.loads(file.attrs["PSERVER.metadata"])]))
`;

test("h5py reads what is saved, and so do we", async () => {
  const { file, bytes, format } = await save("runs/m.h5", MODEL);
  expect([format, bytes]).toEqual(["hdf5", (await stat(file)).size]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const [found, metadata] = JSON.parse(await runPython(READ, [file]));
  expect(metadata).toEqual({ job: "größe", nul: "a\0b" });
  const expected = MODEL.map(({ name, dtype, shape, bytes: content }) => [
    name,
    [expect.any(String), dtype, shape, digest(content)],
  ]);
  expect(found).toEqual(Object.fromEntries(expected));
  expect(found["types/int32"][0]).toBe("types/int32");
  expect(found["a/b"][0]).toBe("a=2Fb");
  const loaded = await load(file);
  expect(digests(loaded.tensors)).toEqual(digests(MODEL));
  expect(loaded.metadata).toEqual(metadata);
});

test("a save that fails leaves what was there, and nothing else", async () => {
  const { file } = await save("kept/m.hdf5", [tensor("w", "float32", [4])]);
  const before = await readFile(file);
  const failing = saveModel({
    directory: home,
    path: "kept/m.hdf5",
    tensors: [tensor("w", "float32", [400_000])],
    chunks: async function* () {
      yield new Uint8Array(1_400_000);
      throw new Error("the block is gone");
    },
  });
  await expect(failing).rejects.toThrow("the block is gone");
  expect(await readFile(file)).toEqual(before);
  expect(await readdir(join(home, "kept"))).toEqual(["m.hdf5"]);
  const short = saveModel({
    directory: home,
    path: "kept/m.hdf5",
    tensors: [tensor("w", "float32", [4])],
    chunks: async function* () {
      yield new Uint8Array(12);
    },
  });
  await expect(short).rejects.toMatchObject({ code: "BAD_LENGTH" });
  expect(await readdir(join(home, "kept"))).toEqual(["m.hdf5"]);
});

test("a full disk is DISK_FULL, and what was written is removed", async () => {
  const disk = new SmallDisk();
  try {
    await disk.take(120 * 1024 * 1024);
    const saving = saveModel({
      directory: disk.path,
      path: "m.h5",
      tensors: [{ name: "w", dtype: "float32", shape: [16, 1024, 1024] }],
      chunks: async function* () {
        for (let i = 0; i < 64; i++) yield new Uint8Array(1024 * 1024);
      },
    });
    await expect(saving).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(await readdir(disk.path)).toEqual(["fill"]);
  } finally {
    disk.remove();
  }
});

const WRITE = `
import h5py, sys
import numpy as np
a = np.arange(60_000, dtype="<f4").reshape(300, 200)
with h5py.File(sys.argv[1], "w") as f:
    f["big endian"] = a.astype(">f4")
    f.create_dataset("deep/gzip", data=a, chunks=(7, 200), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("columns", data=a, chunks=(300, 3), maxshape=(None, None))
    f["scalar"] = np.int64(-5)
    f["soft"] = h5py.SoftLink("/deep/gzip")
    f.create_dataset("unwritten", (5,), dtype="<u4", fillvalue=7)
    f.create_group("no datasets")
    f.attrs["PSERVER.metadata"] = 5
`;

test("reads what h5py writes: chunks, filters, other byte order, links within the file", async () => {
  const path = join(home, "theirs.h5");
  await runPython(WRITE, [path]);
  const { tensors, metadata } = await load(path);
  expect(metadata).toEqual({});
  const values = new Map(tensors.map(({ name, bytes }) => [name, bytes]));
  const count = Float32Array.from({ length: 60_000 }, (_, i) => i);
  for (const name of ["big endian", "deep/gzip", "columns", "soft"]) {
    expect(new Float32Array(values.get(name)?.buffer ?? new ArrayBuffer(0))).toEqual(count);
  }
  expect(values.get("scalar")).toEqual(new Uint8Array(BigInt64Array.of(-5n).buffer));
  expect(values.get("unwritten")).toEqual(new Uint8Array(Uint32Array.of(7, 7, 7, 7, 7).buffer));
  expect(values.size).toBe(6);
});

const FORGE = `
import h5py, os, sys
import numpy as np
os.chdir(sys.argv[1])
secret = sys.argv[2]
for kind in sys.argv[3:]:
  with h5py.File(f"{kind}.h5", "w") as f:
    f["w"] = np.zeros(4, "<f4")
    if kind == "text": f["s"] = "text"
    if kind == "bytes": f["s"] = np.zeros(3, "u1")
    if kind == "half": f["s"] = np.zeros(3, "<f2")
    if kind == "bool": f["s"] = np.zeros(3, "?")
    if kind == "compound": f["s"] = np.zeros(3, [("a", "<f4")])
    if kind == "list": f.create_dataset("s", (2,), dtype=h5py.vlen_dtype(np.dtype("<f4")))
    if kind == "null": f["s"] = h5py.Empty("f")
    if kind == "lzf": f.create_dataset("s", data=np.zeros(100, "<f4"), compression="lzf")
    if kind == "chunk": f.create_dataset("s", (2**30,), chunks=(2**29,), dtype="<f4", compression="gzip")
    if kind == "cycle": f["loop"] = f["/"]
    if kind == "cycles":
        for name in "abcd": f[name] = f["/"]
    if kind == "dangling": f["s"] = h5py.SoftLink("/nowhere")
    if kind == "external link": f["s"] = h5py.ExternalLink(secret, "/w")
    if kind == "external": f.create_dataset("s", (4,), dtype="<f4", external=[(secret, 0, 16)])
    if kind == "virtual":
        layout = h5py.VirtualLayout(shape=(4,), dtype="<f4")
        layout[:] = h5py.VirtualSource(secret, "w", shape=(4,))
        f.create_virtual_dataset("s", layout)
    if kind == "type": f["s"] = np.dtype("<f4")
    if kind == "name": f["w"].attrs["PSERVER.name"] = '"another"'
    if kind == "twice":
        f["a=2Fb"] = np.zeros(1, "<f4")
        f["a=2Fb"].attrs["PSERVER.name"] = '"a/b"'
        f["a/b"] = np.zeros(1, "<f4")
`;

const FORGED = [
  ["text", "BAD_DTYPE", '"s"'],
  ["bytes", "BAD_DTYPE", '"s"'],
  ["half", "BAD_DTYPE", '"s"'],
  ["bool", "BAD_DTYPE", '"s"'],
  ["compound", "BAD_DTYPE", '"s"'],
  ["list", "BAD_DTYPE", '"s"'],
  ["null", "BAD_FILE", "shape"],
  ["lzf", "BAD_FILE", "filter"],
  ["chunk", "BAD_FILE", "chunk"],
  ["cycle", "BAD_FILE", "paths"],
  ["cycles", "BAD_FILE", "paths"],
  ["dangling", "BAD_FILE", '"s"'],
  ["external link", "BAD_FILE", '"s"'],
  ["external", "BAD_FILE", '"s"'],
  ["virtual", "BAD_FILE", "virtual"],
  ["type", "BAD_FILE", '"s"'],
  ["name", "BAD_FILE", "another"],
  ["twice", "BAD_FILE", "each once"],
] as const;

test("refuses datasets that cannot be parameters, and references out of the file", async () => {
  const secret = join(home, "secret.h5");
  await save("secret.h5", [tensor("w", "float32", [4])]);
  await runPython(FORGE, [home, secret, ...FORGED.map(([kind]) => kind)]);
  for (const [kind, code, named] of FORGED) {
    const loaded = load(join(home, `${kind}.h5`));
    await expect(loaded, kind).rejects.toMatchObject({ code });
    await expect(loaded, kind).rejects.toThrow(named);
    await expect(loaded, kind).rejects.toThrow(`${kind}.h5`);
  }
});

test("a file that is cut or changed anywhere is refused, or its tensors are as its headers say", async () => {
  const { file } = await save("small.h5", [
    tensor("g/w", "float32", [2, 3]),
    tensor("../v", "int64", [2]),
  ]);
  const whole = await readFile(file);
  const damaged = join(home, "damaged.h5");
  const outcome = async (bytes: Uint8Array): Promise<string> => {
    await writeFile(damaged, bytes);
    try {
      for (const { dtype, shape, bytes: read } of (await load(damaged)).tensors) {
        expect(read.length).toBe(shape.reduce((a, b) => a * b, DTYPES[dtype].bytes));
      }
      return "read";
    } catch (error) {
      return String((error as { code?: unknown }).code ?? error);
    }
  };
  const position = fc.integer({ min: 0, max: whole.length - 1 });
  await fc.assert(
    fc.asyncProperty(position, fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const changed = Uint8Array.from(whole);
      changed[at] = (changed[at] ?? 0) ^ change;
      expect(["read", "BAD_FILE", "BAD_DTYPE", "BAD_NAME"]).toContain(await outcome(changed));
    }),
    { numRuns: 10 },
  );
  await fc.assert(
    fc.asyncProperty(position, async (length) => {
      expect(await outcome(whole.subarray(0, length))).toBe("BAD_FILE");
    }),
    { numRuns: 4 },
  );
});
