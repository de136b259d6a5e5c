import type { ModelFile } from "./model-file.ts";
import { type IncomingModel, type OutgoingModel } from "./tensor-headers.ts";
/**
 * Yields the bytes of a safetensors file. Tensors of 8-byte elements come first, so that with the padded
 * header every element is aligned in the file.
 * @throws BAD_NAME for a tensor called `__metadata__`; TOO_LARGE for a header above 100 MB; what
 * `model.chunks` throws.
 */
export declare function writeSafetensors(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined>;
/**
 * Reads the header of a safetensors file and checks all of it: the tensors must fill the file without
 * gap or overlap. The format has no checksum, so changed elements go unnoticed.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export declare function readSafetensors(file: ModelFile): Promise<IncomingModel>;
//# sourceMappingURL=safetensors.d.ts.map