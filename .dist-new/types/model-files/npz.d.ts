import { type Dtype } from "../protocol/dtypes.ts";
import type { ModelFile } from "./model-file.ts";
import { type IncomingModel, type OutgoingModel, type TensorHeader } from "./tensor-headers.ts";
/** Most bytes before the text of the header: magic, version and length. */
export declare const NPY_PREFIX_BYTES = 12;
/** Type and shape in a `.npy` header. */
export type NpyHeader = Pick<TensorHeader, "dtype" | "shape">;
/** Where the text of the header lies; the elements follow it. */
export interface NpyTextRange {
    readonly begin: number;
    readonly end: number;
}
/** Makes a version 1 `.npy` header for elements in C order, padded so that they begin at a multiple of 64. */
export declare function encodeNpyHeader(dtype: Dtype, shape: readonly number[]): Uint8Array;
/**
 * Finds where the text of the header lies, from the first {@link NPY_PREFIX_BYTES} of a `.npy` file.
 * @throws BAD_FILE unless it is version 1, 2 or 3 and at most 64 KiB long.
 */
export declare function npyTextRange(path: string, what: string, prefix: Uint8Array): NpyTextRange;
/**
 * Reads the text of a `.npy` header: a Python dictionary with `descr`, `fortran_order` and `shape`.
 * @throws BAD_DTYPE for element types no parameter has, big-endian ones too; BAD_FILE for Fortran
 * order and for anything else.
 */
export declare function parseNpyText(path: string, what: string, text: string): NpyHeader;
/**
 * Yields the bytes of an npz file, as numpy's `savez` lays it out: a zip archive with a stored member
 * `<name>.npy` per tensor. The format has no place for metadata; it becomes the archive's comment, a JSON
 * object, which numpy does not look at. A name that would unpack to elsewhere is escaped; the member's
 * comment keeps it.
 * @throws what `model.chunks` throws.
 */
export declare function writeNpz(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined>;
/**
 * Reads the table of contents and the array headers of an npz file, stored or deflated. Checksums are checked
 * as the bytes are read. A comment of another program is not taken for metadata.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export declare function readNpz(file: ModelFile): Promise<IncomingModel>;
//# sourceMappingURL=npz.d.ts.map