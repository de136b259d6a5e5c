import type { Dtype } from "../../protocol/dtypes.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { Metadata, TensorHeader } from "../tensor.ts";

import type { Box } from "./boxes.ts";
import type { DatasetPath } from "./dataset-path.ts";

/** Bytes that are written at a time; a larger dataset is stored in chunks of about as many. */
export const WRITE_BYTES = 1024 * 1024;

/** Options of an HDF5 thread. */
export interface Hdf5Setup {
  readonly mode: "read" | "write";
  /** Of the open file; the main thread closes it. */
  readonly descriptor: number;
  /** Names the file in messages. */
  readonly file: string;
}

/** A dataset to be made. */
export interface NewDataset extends DatasetPath {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /** All its bytes; absent if they are written later, box by box. */
  readonly data?: Uint8Array;
}

/** A dataset of a file. */
export interface FoundDataset {
  readonly path: string;
  readonly header: TensorHeader;
}

/** Contents of an HDF5 file. */
export interface Hdf5Contents {
  readonly datasets: readonly FoundDataset[];
  readonly metadata: Metadata;
}

/** The elements of a box in a dataset. */
export interface DatasetBox {
  readonly path: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly box: Box;
}

/** Messages of the main thread; each is answered, in order. */
export type ToHdf5 =
  | { readonly type: "create"; readonly dataset: NewDataset }
  | ({ readonly type: "write"; readonly data: Uint8Array } & DatasetBox)
  | { readonly type: "finish"; readonly metadata: string }
  | { readonly type: "list" }
  | ({ readonly type: "read" } & DatasetBox);

/** An answer: the result, or an error. */
export type FromHdf5 =
  | { readonly type: "done" }
  | { readonly type: "contents"; readonly contents: Hdf5Contents }
  | { readonly type: "data"; readonly data: Uint8Array }
  | { readonly type: "error"; readonly error: WireError };
