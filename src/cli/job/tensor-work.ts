import type { TensorSource } from "../../model-files/index.ts";
import { type Tensor, tensorBytes, tensorView, zeros } from "../../protocol/tensor.ts";

/** Most tensors that are read or sent at a time, and most bytes of them; a larger tensor goes alone. */
const IN_WORK_MAX = 16;
const IN_WORK_BYTES_MAX = 64 * 1024 * 1024;

/** Runs `work` for each source, some at a time. After a failure none is started; it rejects when all have ended. */
export async function inBoundedOrder(
  sources: readonly TensorSource[],
  work: (source: TensorSource) => Promise<void>,
): Promise<void> {
  const running = new Map<Promise<void>, number>();
  let failure: { readonly error: unknown } | undefined;
  let bytes = 0;
  for (const source of sources) {
    const next = headerBytes(source.header);
    while (running.size > 0 && (running.size >= IN_WORK_MAX || bytes + next > IN_WORK_BYTES_MAX)) {
      await Promise.race(running.keys());
    }
    if (failure !== undefined) break;
    bytes += next;
    const task: Promise<void> = work(source)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => {
        running.delete(task);
        bytes -= next;
      });
    running.set(task, next);
  }
  await Promise.all(running.keys());
  if (failure !== undefined) throw failure.error;
}

/** Reads a tensor of a model file. @throws what the file's reader throws. */
export async function readTensor(source: TensorSource): Promise<Tensor> {
  const tensor = zeros(source.header.dtype, source.header.shape);
  const target = tensorView(tensor);
  let filled = 0;
  for await (const chunk of source.chunks()) {
    target.set(chunk, filled);
    filled += chunk.length;
  }
  return tensor;
}

/** Bytes of a tensor's elements. */
export function headerBytes({ dtype, shape }: TensorSource["header"]): number {
  return tensorBytes(dtype, shape);
}
