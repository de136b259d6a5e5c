import { type ModelFormat } from "./model-path.ts";
import { type Metadata, type TensorHeader } from "./tensor-headers.ts";
/** A tensor of the file, and the parameters that its bytes come from, in order along axis 0. */
export interface MergedTensor<Header extends TensorHeader = TensorHeader> {
    readonly header: TensorHeader;
    readonly parts: readonly Header[];
}
/**
 * Joins the parameters `<name>:sparse-0` … `<name>:sparse-<n-1>` along axis 0 into one tensor
 * `<name>`, in the place of the first of them; every other parameter stays as it is.
 * @throws MISSING_SHARD listing the missing numbers below the highest; BAD_NAME if `<name>` is a parameter
 * too; BAD_DTYPE, BAD_SHAPE if shards differ in more than their rows; and what {@link checkHeaders} refuses.
 */
export declare function mergeSparse<Header extends TensorHeader>(headers: readonly Header[]): MergedTensor<Header>[];
/** Groups the sparse shards among these parameters by the name of the tensor that a save joins them into. */
export declare function shardsByName<Header extends TensorHeader>(headers: readonly Header[]): ReadonlyMap<string, readonly Header[]>;
/** What to save, and where. */
export interface SaveModelOptions {
    /** The model directory: nothing is written outside it. It must exist. */
    readonly directory: string;
    /** Where in the directory, as the user gave it; its ending chooses the format. */
    readonly path: string;
    readonly tensors: readonly TensorHeader[];
    /**
     * Yields the bytes of one of `tensors`, little-endian, in C order. Called once for each, one after the
     * other, in the order of the file. The memory of a chunk may be used again once the next is asked for.
     */
    readonly chunks: (header: TensorHeader) => AsyncIterable<Uint8Array>;
    readonly metadata?: Metadata;
    readonly signal?: AbortSignal;
}
/** A saved model: its absolute path, all its bytes on disk, and their layout. */
export interface WrittenModel {
    readonly file: string;
    readonly bytes: number;
    readonly format: ModelFormat;
}
/**
 * Writes a model in the format of its name: `*.safetensors`, `*.npz`, `*.tar` (PaddlePaddle's
 * `model.tar`), or a directory for a name that ends in `/`, holds no `.`, or is one already. Only the
 * user who saves it can read it. Sparse shards are merged. What was there before is replaced when
 * everything new is on disk, and stays if anything fails; directories that were made for it are removed
 * then. Memory holds a chunk at a time. A process
 * that is killed may leave a `.pserver-save-….tmp` beside the model.
 * @throws before anything is written: BAD_PATH; EMPTY, TOO_LARGE, BAD_NAME, BAD_DTYPE, BAD_SHAPE,
 * MISSING_SHARD for the tensors; BAD_VALUE, TOO_LARGE for the metadata. Later: BAD_LENGTH if `chunks`
 * yields other than a tensor's bytes, and what it throws; DISK_FULL, IO; ABORTED.
 * @example
 * await saveModel({
 *   directory: "models",
 *   path: "mnist/epoch-3.safetensors",
 *   tensors: [{ name: "w", dtype: "float32", shape: [784, 10] }],
 *   chunks: (header) => pullBlocks(header.name),
 * });
 */
export declare function saveModel(options: SaveModelOptions): Promise<WrittenModel>;
//# sourceMappingURL=save-model.d.ts.map