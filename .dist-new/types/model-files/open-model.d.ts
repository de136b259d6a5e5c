import type { IncomingModel } from "./tensor-headers.ts";
/** A model file open for reading. */
export interface OpenModel extends IncomingModel {
    /** Closes the file; chunks asked for later fail with CLOSED. May be called again. */
    close(): Promise<void>;
}
/**
 * Opens a model that {@link saveModel} or another program wrote: safetensors, npz (stored or
 * deflated), PaddlePaddle's `model.tar`, also packed by gzip, or a model directory with its manifest.
 * Everything the file says of its tensors is checked here; their bytes are read, as often as asked, by
 * `chunks`. Elements of a type that no parameter has come as the type that holds all their values: those of
 * half precision as float32, small integers and booleans as int32. Tensors of other types are in `skipped`.
 * Until it is closed, what gzip has packed takes its unpacked size in `TMPDIR`. The caller closes it.
 * @throws IO if it cannot be read, naming the path; BAD_FILE naming what was expected and received;
 * BAD_DTYPE for an unknown element type in a file of ours; DISK_FULL if there is no room to unpack; the
 * reason of `signal`, which ends the unpacking.
 * @example
 * const model = await openModel("models/mnist.safetensors");
 * try {
 *   for (const tensor of model.tensors) {
 *     for await (const chunk of tensor.chunks()) hash.update(chunk);
 *   }
 * } finally {
 *   await model.close();
 * }
 */
export declare function openModel(path: string, signal?: AbortSignal): Promise<OpenModel>;
//# sourceMappingURL=open-model.d.ts.map