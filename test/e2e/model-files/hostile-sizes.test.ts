// Proves that no description in a model file takes more than a small multiple of its bytes to read: files
// of 20 MB, each made to blow up in one place of one format, are opened by a process whose heap is small.
// It must refuse them all, and open a model of the largest number of tensors; brackets alone ended it.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { deflateRawSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TAR_FIELDS, tarChecksum } from "../../../src/model-files/tar.ts";
import { TENSORS_MAX } from "../../../src/model-files/tensor-headers.ts";
import { HANG_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";

const PROGRAM = testProgram("open-models");
const SIZE = 20_000_000;
const HEAP_MIB = 192;

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-hostile-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** What the program says of each file, in order; it fails if the program ends early. */
async function outcomes(paths: readonly string[]): Promise<readonly unknown[]> {
  const args = [`--max-old-space-size=${HEAP_MIB}`, PROGRAM, ...paths];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: HANG_MS });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** JSON that is large in one way each: `begin`, then `piece` over and over, then `end`. */
const LARGE_JSON: readonly (readonly [name: string, begin: string, piece: string, end: string])[] =
  [
    ["brackets", "", "[", ""],
    ["objects", "", '{"a":', ""],
    ["closed brackets", "[".repeat(SIZE / 2), "]", ""],
    ["empty lists", '{"a":[', "[],", "[]]}"],
    ["empty objects", '{"a":[', "{},", "{}]}"],
    ["numbers", '{"a":[', "1,", "1]}"],
    ["keys", '{"a":0', ',"a":0', "}"],
    ["texts", '{"a":[', '"",', '""]}'],
  ];

function largeJson([, begin, piece, end]: (typeof LARGE_JSON)[number]): Buffer {
  const count = Math.floor((SIZE - begin.length - end.length) / piece.length);
  return Buffer.from(begin + piece.repeat(count) + end);
}

test("safetensors headers, manifests and JSON tensors", async () => {
  const paths: string[] = [];
  for (const kind of LARGE_JSON) {
    const json = largeJson(kind);
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(json.length));
    const name = kind[0].replaceAll(" ", "-");
    await writeFile(join(home, `${name}.safetensors`), Buffer.concat([length, json]));
    await mkdir(join(home, name));
    await writeFile(join(home, name, "manifest.json"), json);
    await writeFile(join(home, `${name}.json`), json);
    paths.push(...[`${name}.safetensors`, name, `${name}.json`].map((file) => join(home, file)));
  }
  expect(await outcomes(paths)).toEqual(paths.map(() => ({ code: "BAD_FILE" })));
});

function tarHeader(type: string, bytes: number): Buffer {
  const block = Buffer.alloc(512);
  block.write("x", TAR_FIELDS.name[0]);
  block.write(`${bytes.toString(8).padStart(11, "0")}\0`, TAR_FIELDS.size[0]);
  block.write(type, TAR_FIELDS.type[0]);
  block.write("ustar\0", TAR_FIELDS.magic[0]);
  const sum = tarChecksum(block).toString(8).padStart(6, "0");
  block.write(`${sum}\0 `, TAR_FIELDS.checksum[0], "latin1");
  return block;
}

/** A pax header with many records of keys that nobody uses, each once. */
function paxHeader(type: string, records: number): Buffer {
  const texts = Array.from({ length: records }, (_, i) => {
    return `16 ${i.toString(36).padStart(10, "0")}=x\n`;
  });
  const text = Buffer.from(texts.join(""));
  const padding = Buffer.alloc((512 - (text.length % 512)) % 512);
  return Buffer.concat([tarHeader(type, text.length), text, padding]);
}

test("tar headers", async () => {
  const bracket = '"PSERVER.metadata'.length;
  const metadata = `=${"[".repeat(SIZE - bracket - 10)}\n`;
  const forged = {
    "one-global": [paxHeader("g", SIZE / 16)],
    "one-local": [paxHeader("x", SIZE / 16)],
    "many-global": Array.from({ length: SIZE / 4_096 }, () => paxHeader("g", 250)),
    "many-local": Array.from({ length: SIZE / 4_096 }, () => paxHeader("x", 250)),
    "long-name": [tarHeader("L", SIZE), Buffer.alloc(SIZE - (SIZE % 512) + 512, "n")],
    metadata: [tarHeader("g", SIZE), Buffer.from(`${SIZE} PSERVER.metadata${metadata}`)],
  };
  const paths = Object.keys(forged).map((name) => join(home, `${name}.tar`));
  for (const [name, parts] of Object.entries(forged)) {
    await writeFile(join(home, `${name}.tar`), Buffer.concat(parts));
  }
  expect(await outcomes(paths)).toEqual(paths.map(() => ({ code: "BAD_FILE" })));
});

test("headers of arrays, packed a thousand times smaller", async () => {
  const members = 4_000;
  const head = Buffer.alloc(65_000 + 12, " ");
  head.write("\x93NUMPY\x02\x00", 0, "latin1");
  head.writeUInt32LE(65_000, 8);
  head.write("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 12);
  const packed = deflateRawSync(head);
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (let i = 0; i < members; i++) {
    const name = Buffer.from(`${i}.npy`);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(8, 8);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(head.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    locals.push(local, name, packed);
    central.push(entry, name);
    at += local.length + name.length + packed.length;
  }
  const table = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(members, 8);
  end.writeUInt16LE(members, 10);
  end.writeUInt32LE(table.length, 12);
  end.writeUInt32LE(at, 16);
  const path = join(home, "headers.npz");
  await writeFile(path, Buffer.concat([...locals, table, end]));
  expect(await outcomes([path])).toEqual([{ code: "BAD_FILE" }]);
});

test("a model of as many tensors as there may be is opened", async () => {
  const entries = Array.from({ length: TENSORS_MAX }, (_, i) => {
    const tensor = { dtype: "F32", shape: [1, 1, 1], data_offsets: [4 * i, 4 * i + 4] };
    return [`layer.${i}.weight`, tensor];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const path = join(home, "many.safetensors");
  await writeFile(path, Buffer.concat([length, header, Buffer.alloc(4 * TENSORS_MAX)]));
  expect(await outcomes([path])).toEqual([{ tensors: TENSORS_MAX }]);
});
