// Proves the forms that only large models take, without writing them: archives are streamed from
// members of zeros, and only what stands between the data is kept and compared with the formats'
// documents. Small archives in the same forms are read by the tests of hostile and of Python's files.
import { describe, expect, test } from "vitest";
import { writeTar } from "../../src/model-files/tar.ts";
import { writeZip } from "../../src/model-files/zip-writer.ts";

const GIB = 1024 ** 3;
const ZEROS = new Uint8Array(16 * 1024 * 1024);

async function* zeros(bytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let done = 0; done < bytes; done += ZEROS.byteLength) {
    yield ZEROS.subarray(0, Math.min(ZEROS.byteLength, bytes - done));
  }
}

/** What an archive holds besides zeros in bulk, and how long it is. */
async function around(chunks: AsyncIterable<Uint8Array>): Promise<{ kept: Buffer; bytes: number }> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (chunk.buffer !== ZEROS.buffer) kept.push(chunk.slice());
  }
  return { kept: Buffer.concat(kept), bytes };
}

describe("zip", () => {
  test("sizes and offsets of 4 GiB and more take 8 bytes", async () => {
    const large = 4 * GIB;
    const members = [
      { name: "a", bytes: large, chunks: () => zeros(large) },
      { name: "b", bytes: 3, chunks: () => zeros(3) },
    ];
    const { kept, bytes } = await around(writeZip(members, ""));
    const firstLocal = 30 + 1 + 20;
    expect(kept.readUInt32LE(18)).toBe(0xffffffff);
    expect(kept.readUInt16LE(31)).toBe(1);
    const descriptor = kept.subarray(firstLocal, firstLocal + 24);
    expect(descriptor.readBigUInt64LE(8)).toBe(BigInt(large));
    expect(descriptor.readBigUInt64LE(16)).toBe(BigInt(large));
    const central = kept.subarray(firstLocal + 24 + 31 + 16);
    expect(central.readUInt32LE(0)).toBe(0x02014b50);
    expect(central.readUInt32LE(24)).toBe(0xffffffff);
    expect(central.readUInt16LE(47)).toBe(1);
    expect(central.readUInt16LE(49)).toBe(16);
    expect(central.readBigUInt64LE(51)).toBe(BigInt(large));
    const second = central.subarray(46 + 1 + 20);
    expect(second.readUInt32LE(24)).toBe(3);
    expect(second.readUInt32LE(42)).toBe(0xffffffff);
    expect(second.readBigUInt64LE(51)).toBe(BigInt(firstLocal + large + 24));
    const end64 = second.subarray(46 + 1 + 12);
    expect(end64.readUInt32LE(0)).toBe(0x06064b50);
    expect(end64.readBigUInt64LE(32)).toBe(2n);
    const centralBytes = 46 + 1 + 20 + 46 + 1 + 12;
    expect(end64.readBigUInt64LE(40)).toBe(BigInt(centralBytes));
    expect(end64.readBigUInt64LE(48)).toBe(BigInt(bytes - 22 - 76 - centralBytes));
    expect(end64.readBigUInt64LE(64)).toBe(BigInt(bytes - 22 - 76));
    expect(end64.readUInt32LE(76)).toBe(0x06054b50);
    expect(end64.readUInt32LE(76 + 16)).toBe(0xffffffff);
  });

  test("65,535 members and more are counted in 8 bytes", async () => {
    const members = Array.from({ length: 65_536 }, (_, i) => ({
      name: String(i),
      bytes: 0,
      chunks: () => zeros(0),
    }));
    const { kept } = await around(writeZip(members, ""));
    const end = kept.subarray(-22);
    expect(end.readUInt16LE(10)).toBe(0xffff);
    expect(kept.subarray(-22 - 76).readBigUInt64LE(32)).toBe(65_536n);
  });
});

test("tar members of 8 GiB and more have their size in a pax record", async () => {
  const bytes = 8 * GIB;
  const members = [{ name: "a", bytes, attributes: {}, chunks: () => zeros(bytes) }];
  const archive = await around(writeTar(members, {}));
  expect(archive.kept.toString("latin1", 512, 512 + 19)).toBe("19 size=8589934592\n");
  expect(archive.kept.toString("latin1", 1024 + 124, 1024 + 136)).toBe("00000000000\0");
  expect(archive.bytes % 10_240).toBe(0);
});
