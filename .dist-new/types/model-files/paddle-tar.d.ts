import type { ModelFile } from "./model-file.ts";
import { type IncomingModel, type OutgoingModel, type TensorHeader } from "./tensor-headers.ts";
/** Bytes before the elements of a PaddlePaddle parameter file. */
export declare const PADDLE_HEADER_BYTES = 16;
/**
 * Yields the bytes of a parameter file: u32 version, u32 bytes of an element, u64 elements, then the
 * elements.
 */
export declare function writeParameterFile(model: OutgoingModel, tensor: TensorHeader): AsyncGenerator<Uint8Array, void, undefined>;
/** Header of a parameter file; the elements fill the rest of the file. */
export interface PaddleHeader {
    readonly valueBytes: number;
    readonly elements: number;
}
/**
 * Reads the header of a parameter file of `fileBytes` bytes.
 * @throws BAD_FILE unless the version is 0, elements take 4 or 8 bytes, and they fill the file.
 */
export declare function decodePaddleHeader(path: string, what: string, header: Uint8Array, fileBytes: number): PaddleHeader;
/** The fields of PaddlePaddle's `ParameterConfig` that describe a tensor. */
export interface TensorConfig {
    readonly name: string;
    readonly size: number;
    readonly dims: readonly number[];
}
/**
 * Reads a serialized `ParameterConfig`; fields not listed in {@link TensorConfig} are skipped.
 * @throws BAD_FILE naming `what` if it is cut short or malformed, lacks the name or size, or holds
 * a number of ours above 2^53.
 */
export declare function decodeTensorConfig(path: string, what: string, bytes: Uint8Array): TensorConfig;
/**
 * Yields the bytes of a `model.tar` as PaddlePaddle's v2 API reads it: for each tensor a member `<name>`, a
 * 16-byte header and the elements, and a member `<name>.protobuf`, its `ParameterConfig`.
 *
 * The format knows float32 with one dimension or more. Another dtype is named by the pax record
 * `PSERVER.dtype` before the member, a scalar's shape by `PSERVER.shape=[]`, and metadata is the
 * global pax record `PSERVER.metadata`, a JSON object. PaddlePaddle would read other dtypes wrongly.
 * A name that would unpack to elsewhere is escaped, in the configuration too; the pax record
 * `PSERVER.name` keeps it, as JSON.
 * @throws BAD_NAME for a name ending in `.protobuf`; what `model.chunks` throws.
 */
export declare function writePaddleTar(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined>;
/**
 * Reads the table of contents and the parameter configurations of a `model.tar`. A parameter without
 * `dims` has the shape `[1, size]`, as PaddlePaddle gives it; one of 8-byte values without
 * `PSERVER.dtype` is float64. The format has no checksum of elements.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export declare function readPaddleTar(file: ModelFile): Promise<IncomingModel>;
//# sourceMappingURL=paddle-tar.d.ts.map