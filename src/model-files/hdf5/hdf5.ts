import type { FileHandle } from "node:fs/promises";
import { DTYPES } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ModelFile } from "../model-file.ts";
import { checkNamesApart } from "../model-path.ts";
import {
  dataBytes,
  encodeMetadata,
  type IncomingModel,
  type OutgoingModel,
  type TensorHeader,
  type TensorSource,
} from "../tensor.ts";

import { boxes } from "./boxes.ts";
import { type DatasetPath, datasetPaths } from "./dataset-path.ts";
import { Hdf5Thread } from "./hdf5-thread.ts";
import { type FoundDataset, WRITE_BYTES } from "./thread-messages.ts";

/** Bytes that are read at a time. */
const READ_BYTES = 4 * 1024 * 1024;

/**
 * Writes a model into an empty file: a dataset for each tensor, as h5py's `create_dataset` of its name
 * makes it. Datasets of at most 1 MiB are stored in one piece, others in chunks. Metadata is an
 * attribute of the root. Memory holds about 1 MiB of elements and the library.
 * @throws IO, DISK_FULL, and what `model.chunks` throws.
 */
export async function writeHdf5(
  file: string,
  { fd: descriptor }: FileHandle,
  model: OutgoingModel,
): Promise<void> {
  const thread = Hdf5Thread.start({ mode: "write", descriptor, file });
  try {
    const paths = datasetPaths(model.tensors.map(({ name }) => name));
    for (const [i, tensor] of model.tensors.entries()) {
      await writeTensor(thread, model, tensor, paths[i] ?? { path: tensor.name });
    }
    await thread.ask({ type: "finish", metadata: encodeMetadata(model.metadata) });
  } finally {
    await thread.close();
  }
}

async function writeTensor(
  thread: Hdf5Thread,
  model: OutgoingModel,
  header: TensorHeader,
  place: DatasetPath,
): Promise<void> {
  const { dtype, shape } = header;
  const bytes = dataBytes(header);
  const pieces = new Pieces(model.chunks(header));
  if (bytes <= WRITE_BYTES) {
    const dataset = { ...place, dtype, shape, data: await pieces.take(bytes) };
    await thread.ask({ type: "create", dataset });
  } else {
    await thread.ask({ type: "create", dataset: { ...place, dtype, shape } });
    const { path } = place;
    for (const box of boxes(shape, WRITE_BYTES / DTYPES[dtype].bytes)) {
      const data = await pieces.take(box.elements * DTYPES[dtype].bytes);
      await thread.ask({ type: "write", path, dtype, shape, box, data });
    }
  }
  await pieces.end();
}

/** Cuts chunks of any lengths into pieces of requested lengths. */
class Pieces {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next bytes, in a buffer of their own. @throws what the source throws, BAD_LENGTH included. */
  async take(bytes: number): Promise<Uint8Array> {
    const piece = new Uint8Array(bytes);
    for (let filled = 0; filled < bytes; ) {
      if (this.#rest.byteLength === 0) {
        const next = await this.#chunks.next();
        if (next.done === true) throw new PserverError("BAD_LENGTH", "a tensor ended early");
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, bytes - filled);
      piece.set(part, filled);
      filled += part.byteLength;
      this.#rest = this.#rest.subarray(part.byteLength);
    }
    return piece;
  }

  /** Reads on to the end, so that the source checks its length. */
  async end(): Promise<void> {
    while ((await this.#chunks.next()).done !== true);
  }
}

/**
 * Reads the datasets of an HDF5 file, in all groups, contiguous, chunked or compressed with what the
 * library brings: deflate, shuffle, checksums. What leads to other files is refused.
 * The model's `close` ends the library's thread.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export async function readHdf5(
  file: ModelFile,
): Promise<IncomingModel & { close(): Promise<void> }> {
  const setup = { mode: "read", descriptor: file.descriptor, file: file.path } as const;
  const thread = Hdf5Thread.start(setup);
  try {
    const answer = await thread.ask({ type: "list" });
    if (answer.type !== "contents") throw new PserverError("INTERNAL", `no list: ${answer.type}`);
    const { datasets, metadata } = answer.contents;
    const tensors = datasets.map(
      (dataset): TensorSource => ({
        header: dataset.header,
        chunks: () => readDataset(thread, dataset),
      }),
    );
    checkNamesApart(
      file.path,
      tensors.map(({ header }) => header),
    );
    return { tensors, metadata, close: async () => await thread.close() };
  } catch (error) {
    await thread.close();
    throw error;
  }
}

async function* readDataset(
  thread: Hdf5Thread,
  { path, header: { dtype, shape } }: FoundDataset,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const box of boxes(shape, READ_BYTES / DTYPES[dtype].bytes)) {
    const answer = await thread.ask({ type: "read", path, dtype, shape, box });
    if (answer.type !== "data") throw new PserverError("INTERNAL", `no data: ${answer.type}`);
    yield answer.data;
  }
}
