// Proves that no file crashes a reader or makes it hang or lie about lengths: small files of every
// format are cut at every byte and have every byte changed, and files are forged number by number.
// A cut file must fail; a changed one must fail with a typed error or give tensors whose bytes match
// their headers, and for npz, which has checksums, exactly the saved bytes.
import { mkdir, open, readdir, readFile, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openModel } from "../../src/model-files/index.ts";
import { encodeNpyHeader } from "../../src/model-files/npz.ts";
import { tarChecksum } from "../../src/model-files/tar.ts";
import { dataBytes } from "../../src/model-files/tensor-headers.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { codeOf, load, sampleTensor, save, withDirectory } from "./sample-model.ts";

const SAMPLE = [sampleTensor("w", "float32", [2, 3]), sampleTensor("größe", "int64", [2])];
const TYPED = ["BAD_FILE", "BAD_DTYPE", "BAD_NAME"];

async function outcomeOf(path: string): Promise<string> {
  const opened = load(path);
  const code = await codeOf(opened);
  if (code !== "none") return code;
  for (const { header, bytes } of (await opened).tensors.values()) {
    expect(bytes.byteLength).toBe(dataBytes(header));
  }
  return code;
}

async function withSample(
  path: string,
  use: (file: string, bytes: Buffer) => Promise<void>,
): Promise<void> {
  await withDirectory(async (directory) => {
    const { file } = await save(directory, path, SAMPLE, { k: "v" });
    const bytes = await readFile(file);
    await use(file, bytes);
  });
}

describe.each(["m.safetensors", "m.npz", "m.tar"])("%s", (path) => {
  test("cut at any byte fails", async () => {
    await withSample(path, async (file, bytes) => {
      // The zeros at the end of a tar may be cut down to the two blocks that must be there.
      const needed =
        path === "m.tar" ? bytes.findLastIndex((byte) => byte !== 0) + 1 : bytes.length;
      for (let length = needed - 1; length >= 0; length--) {
        if (isDull(path, bytes, length)) continue;
        await truncate(file, length);
        expect([length, await outcomeOf(file)]).toEqual([length, "BAD_FILE"]);
      }
    });
  });

  test("with any byte changed fails with a typed error or reads to the end", async () => {
    await withSample(path, async (file, bytes) => {
      const end = path === "m.tar" ? bytes.findLastIndex((byte) => byte !== 0) + 600 : bytes.length;
      const masks = path === "m.tar" ? [0x01] : [0x01, 0x80, 0xff];
      const handle = await open(file, "r+");
      for (let at = 0; at < end; at++) {
        if (isDull(path, bytes, at)) continue;
        for (const mask of masks) {
          await handle.write(Buffer.of((bytes[at] ?? 0) ^ mask), 0, 1, at);
          const outcome = await outcomeOf(file);
          if (outcome !== "none") expect(TYPED).toContain(outcome);
          else if (path === "m.npz") await expectSample(file);
        }
        await handle.write(bytes, at, 1, at);
      }
      await handle.close();
      await expectSample(file);
    });
  });

  test("made of random bytes, or followed by some, fails", async () => {
    await withSample(path, async (file, bytes) => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 2000 }), async (noise) => {
          await writeFile(file, noise);
          expect(await outcomeOf(file)).toBe("BAD_FILE");
          if (path === "m.tar") return;
          await writeFile(file, Buffer.concat([bytes, noise]));
          expect(await outcomeOf(file)).toBe("BAD_FILE");
        }),
        { numRuns: 40 },
      );
    });
  });
});

/** Most of a small tar is zeros, of which one in eight is enough. */
function isDull(path: string, bytes: Buffer, at: number): boolean {
  return path === "m.tar" && at % 8 > 0 && bytes[at] === 0 && bytes[at - 1] === 0;
}

async function expectSample(file: string): Promise<void> {
  const { tensors } = await load(file);
  expect(tensors).toEqual(new Map(SAMPLE.map((tensor) => [tensor.header.name, tensor])));
}

describe("a model directory", () => {
  test("fails when a file of it is cut, changed in its header, or absent", async () => {
    await withSampleDirectory(async (directory) => {
      for (const name of await readdir(directory)) {
        const file = join(directory, name);
        const bytes = await readFile(file);
        for (let length = 0; length < bytes.length - 1; length++) {
          await writeFile(file, bytes.subarray(0, length));
          expect([name, length, await outcomeOf(directory)]).toEqual([name, length, "BAD_FILE"]);
        }
        for (let at = 0; at < bytes.length; at++) {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ 0x01;
          await writeFile(file, changed);
          const outcome = await outcomeOf(directory);
          // A changed name in the manifest may lead to a file that is not there.
          if (outcome !== "none") expect([...TYPED, "IO"]).toContain(outcome);
        }
        await writeFile(file, bytes);
      }
    });
  });

  test("does not follow its manifest out of the directory", async () => {
    await withSampleDirectory(async (directory) => {
      const manifest = join(directory, "manifest.json");
      const text = await readFile(manifest, "utf8");
      await writeFile(manifest, text.replace('"file": "w"', '"file": "../w"'));
      await writeFile(join(directory, "..", "w"), await readFile(join(directory, "w")));
      await expect(openModel(directory)).rejects.toThrow('expected w; received "../w"');
    });
  });
});

async function withSampleDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    await use((await save(directory, "m", SAMPLE, { k: "v" })).file);
  });
}

function safetensors(header: string, dataLength: number, headerBytes?: number): Buffer {
  const text = Buffer.from(header);
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(headerBytes ?? text.length));
  return Buffer.concat([prefix, text, Buffer.alloc(dataLength)]);
}

const W = '"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}';

test.each([
  ["a header above 100 MB", safetensors(`{${W}}`, 8, 100_000_001)],
  ["a header beyond 2^53", Buffer.from("ffffffffffffffff7b7d", "hex")],
  ["a header that is a list", safetensors("[]", 0)],
  ["a header that begins with a blank", safetensors(` {${W}}`, 8)],
  ["a header deeply nested", safetensors(`{"w":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, 0)],
  ["a duplicate name", safetensors(`{${W},${W}}`, 8)],
  [
    "a duplicate field",
    safetensors('{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 8),
  ],
  ["a tensor without fields", safetensors('{"w":{}}', 0)],
  [
    "a field too many",
    safetensors('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}', 8),
  ],
  ["an empty name", safetensors(W.replace("w", "").replace(/^/, "{").concat("}"), 8)],
  ["a lone surrogate in a name", safetensors(`{${W.replace("w", "\\ud800")}}`, 8)],
  ["metadata that is not text", safetensors(`{"__metadata__":{"a":1},${W}}`, 8)],
  ["metadata that is a list", safetensors(`{"__metadata__":[],${W}}`, 8)],
  ["a hole before", safetensors(`{${W.replace("[0,8]", "[4,12]")}}`, 12)],
  ["a hole after", safetensors(`{${W}}`, 12)],
  ["data that is missing", safetensors(`{${W}}`, 7)],
  ["an overlap", safetensors(`{${W},${W.replace("w", "v")}}`, 16)],
  ["offsets that do not fit the shape", safetensors(`{${W.replace("[2]", "[3]")}}`, 8)],
  ["offsets in reverse", safetensors(`{${W.replace("[0,8]", "[8,0]")}}`, 8)],
  ["offsets that are no numbers", safetensors(`{${W.replace("[0,8]", '["0",8]')}}`, 8)],
  ["a negative dimension", safetensors(`{${W.replace("[2]", "[-1,-2]")}}`, 8)],
  ["a dimension that is a fraction", safetensors(`{${W.replace("[2]", "[0.5,4]")}}`, 8)],
  ["a product beyond 2^53", safetensors(`{${W.replace("[2]", "[4294967296,4294967296]")}}`, 8)],
  ["33 dimensions", safetensors(`{${W.replace("[2]", `[2${",1".repeat(32)}]`)}}`, 8)],
])("safetensors with %s is refused", async (_what, bytes) => {
  await withDirectory(async (directory) => {
    const file = join(directory, "m.safetensors");
    await writeFile(file, bytes);
    expect(await outcomeOf(file)).toBe("BAD_FILE");
  });
});

interface ForgedMember {
  readonly name?: string;
  readonly data: Buffer;
  readonly claimedBytes?: number;
  readonly claimedPackedBytes?: number;
  readonly method?: number;
  readonly packed?: Buffer;
  readonly crc?: number;
  readonly flags?: number;
  readonly localAt?: number;
}

/** A zip archive that may lie; 8-byte sizes are used throughout, small as the numbers are. */
function zip(members: readonly ForgedMember[], comment = ""): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const member of members) {
    const { name = "w.npy", data, method = 0, flags = 0, packed = data } = member;
    const nameBytes = Buffer.from(name);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(flags, 6);
    local.writeUInt16LE(method, 8);
    local.writeUInt16LE(nameBytes.length, 26);
    locals.push(local, nameBytes, packed);
    const head = Buffer.alloc(46);
    head.writeUInt32LE(0x02014b50, 0);
    head.writeUInt16LE(flags, 8);
    head.writeUInt16LE(method, 10);
    head.writeUInt32LE(member.crc ?? crc32(data), 16);
    head.fill(0xff, 20, 28);
    head.writeUInt16LE(nameBytes.length, 28);
    head.writeUInt16LE(28, 30);
    head.fill(0xff, 42, 46);
    const extra = Buffer.alloc(28);
    extra.writeUInt16LE(1, 0);
    extra.writeUInt16LE(24, 2);
    extra.writeBigUInt64LE(BigInt(member.claimedBytes ?? data.length), 4);
    extra.writeBigUInt64LE(BigInt(member.claimedPackedBytes ?? packed.length), 12);
    extra.writeBigUInt64LE(BigInt(member.localAt ?? offset), 20);
    central.push(head, nameBytes, extra);
    offset += 30 + nameBytes.length + packed.length;
  }
  const directory = Buffer.concat(central);
  const end64 = Buffer.alloc(56 + 20);
  end64.writeUInt32LE(0x06064b50, 0);
  end64.writeBigUInt64LE(44n, 4);
  end64.writeBigUInt64LE(BigInt(members.length), 24);
  end64.writeBigUInt64LE(BigInt(members.length), 32);
  end64.writeBigUInt64LE(BigInt(directory.length), 40);
  end64.writeBigUInt64LE(BigInt(offset), 48);
  end64.writeUInt32LE(0x07064b50, 56);
  end64.writeBigUInt64LE(BigInt(offset + directory.length), 64);
  end64.writeUInt32LE(1, 72);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.fill(0xff, 8, 20);
  end.writeUInt16LE(Buffer.byteLength(comment), 20);
  return Buffer.concat([...locals, directory, end64, end, Buffer.from(comment)]);
}

function npy(text: string, elements: Buffer, version = 1): Buffer {
  const length = Buffer.alloc(version === 1 ? 2 : 4);
  if (version === 1) length.writeUInt16LE(Buffer.byteLength(text));
  else length.writeUInt32LE(Buffer.byteLength(text));
  const magic = Buffer.concat([Buffer.from("\x93NUMPY", "latin1"), Buffer.from([version, 0])]);
  return Buffer.concat([magic, length, Buffer.from(text), elements]);
}

const ARRAY = Buffer.concat([encodeNpyHeader("float32", [2]), Buffer.alloc(8)]);
const DICT = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
const EIGHT = Buffer.alloc(8);

async function outcomeOfNpz(bytes: Buffer): Promise<string> {
  return await withDirectory(async (directory) => {
    const file = join(directory, "m.npz");
    await writeFile(file, bytes);
    return await outcomeOf(file);
  });
}

test.each([
  ["8-byte sizes", zip([{ data: ARRAY }])],
  ["a foreign comment", zip([{ data: ARRAY }], "made by hand")],
  ["deflated data", zip([{ data: ARRAY, packed: deflateRawSync(ARRAY), method: 8 }])],
  [
    "keys in another order, double quotes, Python 2 numbers",
    zip([{ data: npy(`{"shape": (2L,), "fortran_order": False, "descr": "<f4"}`, EIGHT) }]),
  ],
  ["no blanks", zip([{ data: npy("{'descr':'<f4','fortran_order':False,'shape':(2,)}", EIGHT) }])],
])("npz with %s is read", async (_what, bytes) => {
  expect(await outcomeOfNpz(bytes)).toBe("none");
});

test.each([
  [
    "a claim beyond the file",
    zip([{ data: ARRAY, claimedBytes: 2 ** 40, claimedPackedBytes: 2 ** 40 }]),
  ],
  [
    "a claim beyond 2^53",
    zip([{ data: ARRAY, claimedBytes: 2 ** 60, claimedPackedBytes: 2 ** 60 }]),
  ],
  ["a member outside", zip([{ data: ARRAY, localAt: 2 ** 40 }])],
  ["a member in the directory", zip([{ data: ARRAY, localAt: 100 }])],
  ["overlapping members", zip([{ data: ARRAY }, { name: "v.npy", data: ARRAY, localAt: 0 }])],
  ["a duplicate member", zip([{ data: ARRAY }, { data: ARRAY }])],
  ["a member of another kind", zip([{ name: "readme.txt", data: ARRAY }])],
  ["a member without a name", zip([{ name: ".npy", data: ARRAY }])],
  ["an unknown method", zip([{ data: ARRAY, method: 9 }])],
  ["encryption", zip([{ data: ARRAY, flags: 1 }])],
  ["a wrong checksum", zip([{ data: ARRAY, crc: 1 }])],
  ["stored sizes that differ", zip([{ data: ARRAY, claimedBytes: ARRAY.length + 1 }])],
  ["deflated data that is none", zip([{ data: ARRAY, method: 8 }])],
  [
    "deflated data that is cut",
    zip([{ data: ARRAY, packed: deflateRawSync(ARRAY).subarray(0, -2), method: 8 }]),
  ],
  [
    "deflated data longer than it says",
    zip([
      {
        data: ARRAY,
        packed: deflateRawSync(Buffer.concat([ARRAY, Buffer.alloc(10_000_000)])),
        method: 8,
      },
    ]),
  ],
  ["no numpy header", zip([{ data: Buffer.alloc(200) }])],
  ["a numpy header that is cut", zip([{ data: ARRAY.subarray(0, 50) }])],
  ["a numpy version 4", zip([{ data: npy(DICT, EIGHT, 4) }])],
  ["a numpy header above 64 KiB", zip([{ data: npy(DICT.padEnd(70_000), EIGHT, 2) }])],
  ["a shape that does not fit", zip([{ data: npy(DICT.replace("2,", "3,"), EIGHT) }])],
  [
    "a shape beyond counting",
    zip([{ data: npy(DICT.replace("2,", `${"9".repeat(400)},`), EIGHT) }]),
  ],
  ["a negative dimension", zip([{ data: npy(DICT.replace("2,", "-2,"), EIGHT) }])],
  ["a shape that is one number", zip([{ data: npy(DICT.replace("(2,)", "2"), EIGHT) }])],
  ["a key twice", zip([{ data: npy(DICT.replace(", }", ", 'shape': (2,), }"), EIGHT) }])],
  ["a key too many", zip([{ data: npy(DICT.replace(", }", ", 'x': True, }"), EIGHT) }])],
  ["a key missing", zip([{ data: npy("{'descr': '<f4', 'shape': (2,), }", EIGHT) }])],
  [
    "Python code",
    zip([{ data: npy("{'descr': '<f4', 'fortran_order': False, 'shape': tuple([2])}", EIGHT) }]),
  ],
  ["many blanks", zip([{ data: npy(`{'shape': (1${" ".repeat(60_000)}x`, EIGHT) }])],
  ["deep brackets", zip([{ data: npy(`{'shape': ${"(".repeat(60_000)}`, EIGHT) }])],
])("npz with %s is refused", async (_what, bytes) => {
  expect(await outcomeOfNpz(bytes)).toBe("BAD_FILE");
});

test("npz members inside one another, or reaching into the directory, are refused as such", async () => {
  const inner = zip([{ name: "v.npy", data: ARRAY }]).subarray(0, 30 + 5 + ARRAY.length);
  const outer = npy(
    DICT.replace("2,", `${(inner.length + 1) / 4},`),
    Buffer.concat([inner, Buffer.of(0)]),
  );
  const innerAt = 30 + 5 + outer.length - inner.length - 1;
  const bomb = zip([{ data: outer }, { name: "v.npy", data: ARRAY, localAt: innerAt }]);
  const reaching = zip([
    { data: ARRAY, claimedBytes: ARRAY.length + 8, claimedPackedBytes: ARRAY.length + 8 },
  ]);
  await withDirectory(async (directory) => {
    const file = join(directory, "m.npz");
    await writeFile(file, bomb);
    await expect(openModel(file)).rejects.toThrow('place of "v.npy"');
    await writeFile(file, reaching);
    await expect(openModel(file)).rejects.toThrow('packed bytes of "w.npy"');
  });
});

test("unpacking stops where the size is passed, however much would follow", async () => {
  const packed = deflateRawSync(Buffer.concat([ARRAY, Buffer.alloc(10_000_000)]));
  await withDirectory(async (directory) => {
    const file = join(directory, "m.npz");
    await writeFile(file, zip([{ data: ARRAY, packed, method: 8 }]));
    await expect(load(file)).rejects.toSatisfy(
      (error) => error instanceof PserverError && Number(error.details["received"]) < 1_000_000,
    );
  });
});

/** Writes a tar header field and mends the checksum. */
function forge(bytes: Buffer, headerAt: number, fieldAt: number, text: string): Buffer {
  const forged = Buffer.from(bytes);
  forged.write(text, headerAt + fieldAt, "latin1");
  const block = forged.subarray(headerAt, headerAt + 512);
  forged.write(`${tarChecksum(block).toString(8).padStart(6, "0")}\0 `, headerAt + 148, "latin1");
  return forged;
}

test("tar members that lie are refused", async () => {
  await withDirectory(async (directory) => {
    const { file } = await save(directory, "m.tar", [sampleTensor("w", "float32", [2])]);
    const bytes = await readFile(file);
    const config = 1024;
    const forgeries: [string, Buffer][] = [
      ["a size beyond the file", forge(bytes, 0, 124, "77777777777\0")],
      ["a size beyond 2^53", forge(bytes, 0, 124, `\x80${"\xff".repeat(11)}`)],
      ["a size that is no number", forge(bytes, 0, 124, "00000000x00\0")],
      ["a link", forge(bytes, 0, 156, "2")],
      ["a member renamed", forge(bytes, 0, 0, "v")],
      ["a configuration without its member", forge(bytes, 0, 0, "v.protobuf")],
      ["a member without its configuration", forge(bytes, config, 0, "w.protobux")],
      ["one name twice", forge(bytes, config, 0, "w\0\0\0\0\0\0\0\0\0")],
    ];
    const values = [
      ["a mode changed after the checksum", 100, 0x31],
      ["another version", 512, 1],
      ["another element size", 516, 8],
      ["another count", 520, 3],
    ] as const;
    for (const [what, at, value] of values) {
      const forged = Buffer.from(bytes);
      forged[at] = value;
      forgeries.push([what, forged]);
    }
    const protobuf = [
      ["another name", 2, "v".charCodeAt(0)],
      ["another size", 4, 3],
      ["other dims", 6, 3],
      ["an unknown wire type", 5, 0x4b],
      ["a length beyond the end", 1, 100],
    ] as const;
    for (const [what, at, value] of protobuf) {
      const forged = Buffer.from(bytes);
      forged[config + 512 + at] = value;
      forgeries.push([`a configuration with ${what}`, forged]);
    }
    for (const [what, forged] of forgeries) {
      await writeFile(file, forged);
      expect([what, await outcomeOf(file)]).toEqual([what, "BAD_FILE"]);
    }
    await writeFile(file, bytes);
    expect(await outcomeOf(file)).toBe("none");
  });
});

test("what is not there, or no file, or of another name is refused with its path", async () => {
  await withDirectory(async (directory) => {
    for (const path of ["m.safetensors", "m.npz", "m.tar", "m"]) {
      const opened = openModel(join(directory, path));
      expect(await codeOf(opened)).toBe("IO");
      await expect(opened).rejects.toThrow(join(directory, path));
    }
    await writeFile(join(directory, "m.bin"), "x");
    expect(await codeOf(openModel(join(directory, "m.bin")))).toBe("BAD_FILE");
    await writeFile(join(directory, "m.h5"), "x");
    const opened = openModel(join(directory, "m.h5"));
    expect(await codeOf(opened)).toBe("BAD_FILE");
    await expect(opened).rejects.toThrow(
      /npz, \.tar, \.tar\.gz, \.tgz, \.safetensors\.index\.json; received "m\.h5", but the server has no HDF5/,
    );
    await symlink("/dev/null", join(directory, "null.npz"));
    await expect(openModel(join(directory, "null.npz"))).rejects.toThrow("a regular file");
    await mkdir(join(directory, "empty"));
    expect(await codeOf(openModel(join(directory, "empty")))).toBe("IO");
  });
});
