import { Dataset, type File, Group } from "h5wasm";
import { bytesOf, DTYPES, type TensorData } from "../../protocol/dtypes.ts";
import { quoteName } from "../../protocol/names.ts";
import { badFile, badFileDtype } from "../file-text.ts";
import { trueNameOf } from "../model-path.ts";
import {
  DESCRIPTION_BYTES_MAX,
  isShape,
  type Metadata,
  parseMetadata,
  showShape,
  TENSORS_MAX,
} from "../tensor.ts";

import { dtypeOfDataset, elementsOfBytes, HDF5_TYPES } from "./element-types.ts";
import { type Hdf5File, METADATA_ATTRIBUTE, NAME_ATTRIBUTE } from "./library.ts";
import type { DatasetBox, FoundDataset, Hdf5Contents } from "./thread-messages.ts";

/** Groups within groups at most. */
const DEPTH_MAX = 64;

/** Bytes of a chunk of a dataset at most: the library unpacks whole ones into memory. */
const CHUNK_BYTES_MAX = 256 * 1024 * 1024;

/**
 * The highest id of HDF5's own filters; others, such as lzf, are plug-ins that this build lacks.
 */
const FILTER_MAX = 6;

/** Reads the datasets of an HDF5 file that anybody may have made. */
export class Hdf5Reader {
  readonly #file: Hdf5File;
  readonly #path: string;

  /** @param path names the file in messages. */
  constructor(file: Hdf5File, path: string) {
    this.#file = file;
    this.#path = path;
  }

  /**
   * Lists every dataset below the root, by hard and soft links, and our metadata.
   * @throws BAD_FILE for anything but datasets of numbers in this file; BAD_DTYPE; IO.
   */
  list(): Hdf5Contents {
    const walk = { datasets: [] as FoundDataset[], links: 0, bytes: 0 };
    this.#visit("", 0, walk);
    return { datasets: walk.datasets, metadata: this.#metadata() };
  }

  /** The little-endian bytes of one box, in C order. */
  read({ path, dtype, shape, box }: DatasetBox): Uint8Array {
    const what = `dataset ${quoteName(path)}`;
    const value = this.#file.run(what, (file) => {
      const dataset = file.get(path);
      if (!(dataset instanceof Dataset)) return null;
      if (shape.length === 0) return dataset.value;
      return dataset.slice(box.begin.map((first, axis) => [first, box.end[axis] ?? 0]));
    });
    const data = elementsOfBytes(dtype, new Uint8Array(box.elements * DTYPES[dtype].bytes));
    if (typeof value === "number" || typeof value === "bigint") data[0] = value;
    else if (ArrayBuffer.isView(value) && value.byteLength === data.byteLength) {
      return bytesOf(value as TensorData);
    } else throw badFile(this.#path, what, `${box.elements} elements`, "something else");
    return bytesOf(data);
  }

  #visit(
    parent: string,
    depth: number,
    walk: { readonly datasets: FoundDataset[]; links: number; bytes: number },
  ): void {
    const names = this.#file.run(`group ${quoteName(parent)}`, (file) =>
      (parent === "" ? file : new Group(file.file_id, `/${parent}`)).keys(),
    );
    for (const name of names) {
      const path = parent === "" ? name : `${parent}/${name}`;
      walk.links += 1;
      walk.bytes += path.length;
      if (walk.links > TENSORS_MAX) {
        throw badFile(this.#path, "groups and datasets", `at most ${TENSORS_MAX}`, "more");
      }
      if (walk.bytes > DESCRIPTION_BYTES_MAX || depth > DEPTH_MAX) {
        const expected = `at most ${DEPTH_MAX} groups deep and ${DESCRIPTION_BYTES_MAX} bytes`;
        throw badFile(this.#path, "paths", expected, "more");
      }
      const entity = this.#file.run(`object ${quoteName(path)}`, (file) => file.get(path));
      if (entity instanceof Group) this.#visit(path, depth + 1, walk);
      else if (entity instanceof Dataset) walk.datasets.push(this.#describe(path, entity));
      else {
        throw badFile(this.#path, `object ${quoteName(path)}`, "a group or a dataset", "another");
      }
    }
  }

  #describe(path: string, dataset: Dataset): FoundDataset {
    const what = `dataset ${quoteName(path)}`;
    const found = this.#file.run(what, () => ({
      metadata: dataset.metadata,
      kept: dataset.attrs[NAME_ATTRIBUTE]?.value,
      filter: dataset.filters.find(({ id }) => id > FILTER_MAX),
    }));
    const { shape, size, chunks, virtual_sources: sources = [] } = found.metadata;
    const dtype = dtypeOfDataset(found.metadata);
    if (dtype === undefined) {
      const received = `class ${found.metadata.type} of ${size} bytes`;
      throw badFileDtype(this.#path, what, Object.keys(HDF5_TYPES).join(", "), received);
    }
    if (!isShape(shape)) throw badFile(this.#path, `shape of ${what}`, "counts", showShape(shape));
    if (sources.length > 0) throw badFile(this.#path, what, "elements of its own", "a virtual one");
    const chunkBytes = (chunks ?? [0]).reduce((product, length) => product * length, size);
    if (chunkBytes > CHUNK_BYTES_MAX) {
      throw badFile(this.#path, `chunk of ${what}`, `at most ${CHUNK_BYTES_MAX} bytes`, chunkBytes);
    }
    if (found.filter !== undefined) {
      const { id, name } = found.filter;
      throw badFile(
        this.#path,
        `filter of ${what}`,
        "one of HDF5's own",
        `${id}, ${quoteName(name)}`,
      );
    }
    const kept = typeof found.kept === "string" ? found.kept : undefined;
    return { path, header: { name: trueNameOf(this.#path, path, kept), dtype, shape } };
  }

  #metadata(): Metadata {
    const value = this.#file.run("metadata", (file: File) => file.attrs[METADATA_ATTRIBUTE]?.value);
    return typeof value === "string" ? (parseMetadata(value) ?? {}) : {};
  }
}
