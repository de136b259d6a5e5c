import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TensorHeader } from "../../src/model-files/index.ts";
import { type OpenModel, openModel } from "../../src/model-files/open-model.ts";
import { saveModel, type WrittenModel } from "../../src/model-files/save-model.ts";
import { DTYPES, type Dtype, isDtype } from "../../src/protocol/dtypes.ts";
import { PserverError } from "../../src/protocol/errors.ts";

export const ALL_DTYPES: readonly Dtype[] = Object.keys(DTYPES).filter(isDtype);
/** A path of each format. */
export const ALL_PATHS = ["m.safetensors", "m.npz", "m.tar", "m"] as const;

export interface SampleTensor {
  readonly header: TensorHeader;
  readonly bytes: Uint8Array;
}

/** A tensor of bytes that tell where they stand. */
export function sampleTensor(name: string, dtype: Dtype, shape: readonly number[]): SampleTensor {
  const elements = shape.reduce((product, dimension) => product * dimension, 1);
  const bytes = new Uint8Array(elements * DTYPES[dtype].bytes);
  for (const i of bytes.keys()) bytes[i] = (i * 31 + name.length) % 251;
  return { header: { name, dtype, shape }, bytes };
}

/** Saves tensors in chunks of `chunkBytes`, all through one buffer that is used again. */
export async function save(
  directory: string,
  path: string,
  tensors: readonly SampleTensor[],
  metadata: Record<string, string> = {},
  chunkBytes = 7,
): Promise<WrittenModel> {
  const bytesByName = new Map(tensors.map(({ header, bytes }) => [header.name, bytes]));
  const buffer = new Uint8Array(chunkBytes);
  return await saveModel({
    directory,
    path,
    metadata,
    tensors: tensors.map(({ header }) => header),
    chunks: async function* ({ name }) {
      const bytes = bytesByName.get(name) ?? new Uint8Array();
      for (let at = 0; at < bytes.byteLength; at += chunkBytes) {
        const part = bytes.subarray(at, at + chunkBytes);
        buffer.set(part);
        yield buffer.subarray(0, part.byteLength);
      }
    },
  });
}

/** What an open model holds, by name, so that formats that sort differently compare equal. */
export async function contents(model: OpenModel): Promise<Map<string, SampleTensor>> {
  const found = new Map<string, SampleTensor>();
  for (const tensor of model.tensors) {
    found.set(tensor.header.name, {
      header: tensor.header,
      bytes: await joinChunks(tensor.chunks()),
    });
  }
  return found;
}

/** Opens, reads all and closes. */
export async function load(
  path: string,
): Promise<{ tensors: Map<string, SampleTensor>; metadata: Readonly<Record<string, string>> }> {
  const model = await openModel(path);
  try {
    return { tensors: await contents(model), metadata: model.metadata };
  } finally {
    await model.close();
  }
}

/** All bytes of a stream. */
export async function joinChunks(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return new Uint8Array(Buffer.concat(parts));
}

/** The code that a promise fails with; any error that is not ours fails the test. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof PserverError) return error.code;
    throw error;
  }
  return "none";
}

/** A directory that is removed after `use`. */
export async function withDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "pserver-models-"));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
