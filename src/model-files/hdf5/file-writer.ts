import type { Dataset, File } from "h5wasm";
import { allocateData, DTYPES } from "../../protocol/dtypes.ts";
import { quoteName } from "../../protocol/names.ts";
import { boxShape } from "./boxes.ts";
import { groupsOf } from "./dataset-path.ts";
import { elementsOfBytes, HDF5_TYPES } from "./element-types.ts";
import { type Hdf5File, METADATA_ATTRIBUTE, NAME_ATTRIBUTE } from "./library.ts";
import { type DatasetBox, type NewDataset, WRITE_BYTES } from "./thread-messages.ts";

/** Writes datasets into an HDF5 file, the elements of large ones box by box. */
export class Hdf5Writer {
  readonly #file: Hdf5File;
  readonly #groups = new Set<string>();

  constructor(file: Hdf5File) {
    this.#file = file;
  }

  /**
   * Makes a dataset and its groups: contiguous if its bytes are given, else in chunks, whose
   * elements can be written later.
   * @throws BAD_FILE, IO, DISK_FULL, as the other methods do.
   */
  create(dataset: NewDataset): void {
    this.#file.run(`dataset ${quoteName(dataset.path)}`, (file) => {
      for (const group of groupsOf(dataset.path)) {
        if (!this.#groups.has(group)) file.create_group(group);
        this.#groups.add(group);
      }
      const created = dataset.data === undefined ? inChunks(file, dataset) : whole(file, dataset);
      if (dataset.trueName !== undefined)
        created.create_attribute(NAME_ATTRIBUTE, JSON.stringify(dataset.trueName));
    });
  }

  /** Writes the elements of one box. */
  write({ path, dtype, box }: DatasetBox, data: Uint8Array): void {
    this.#file.run(`dataset ${quoteName(path)}`, (file) => {
      const dataset = file.get(path) as Dataset;
      dataset.write_slice(
        box.begin.map((first, axis) => [first, box.end[axis] ?? 0]),
        elementsOfBytes(dtype, data),
      );
    });
  }

  /** Writes the metadata, if any, and what the library has buffered. */
  finish(metadata: string): void {
    if (metadata !== "") {
      this.#file.run("metadata", (file) => file.create_attribute(METADATA_ATTRIBUTE, metadata));
    }
    this.#file.close();
  }
}

function whole(file: File, { path, dtype, shape, data = new Uint8Array(0) }: NewDataset): Dataset {
  return file.create_dataset({
    name: path,
    dtype: HDF5_TYPES[dtype],
    shape: [...shape],
    data: elementsOfBytes(dtype, data),
  });
}

function inChunks(file: File, { path, dtype, shape }: NewDataset): Dataset {
  const created = file.create_dataset({
    name: path,
    dtype: HDF5_TYPES[dtype],
    shape: [0, ...shape.slice(1)],
    maxshape: [...shape],
    chunks: boxShape(shape, WRITE_BYTES / DTYPES[dtype].bytes),
    data: allocateData(dtype, 0),
  });
  created.resize([...shape]);
  return created;
}
