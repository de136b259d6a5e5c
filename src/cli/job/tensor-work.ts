import type { TensorSource } from "../../model-files/index.ts";
import { BATCH_BYTES, PARAMETERS_PER_REQUEST_MAX } from "../../protocol/limits.ts";
import { type Tensor, tensorBytes, tensorView, zeros } from "../../protocol/tensor.ts";

/** Most groups that are read or sent at a time, and most bytes of them; a larger tensor goes alone. */
const IN_WORK_MAX = 16;
const IN_WORK_BYTES_MAX = 64 * 1024 * 1024;

/** Most tensors and bytes of a group of several: about what one request declares, and a record of the journal holds. */
const GROUP_MAX = PARAMETERS_PER_REQUEST_MAX;
const GROUP_BYTES_MAX = BATCH_BYTES;

/**
 * Runs `work` for all sources in groups, some at a time: small ones that follow each other are a group, a large one
 * is by itself. After a failure none is started; it rejects when all have ended.
 */
export async function inBoundedOrder(
  sources: readonly TensorSource[],
  work: (group: readonly TensorSource[]) => Promise<void>,
): Promise<void> {
  const running = new Map<Promise<void>, number>();
  let failure: { readonly error: unknown } | undefined;
  let bytes = 0;
  for (const group of grouped(sources)) {
    const next = groupBytes(group);
    while (running.size > 0 && (running.size >= IN_WORK_MAX || bytes + next > IN_WORK_BYTES_MAX)) {
      await Promise.race(running.keys());
    }
    if (failure !== undefined) break;
    bytes += next;
    const task: Promise<void> = work(group)
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

function grouped(sources: readonly TensorSource[]): TensorSource[][] {
  const groups: TensorSource[][] = [];
  let bytes = 0;
  for (const source of sources) {
    const own = headerBytes(source.header);
    const last = groups.at(-1);
    if (last !== undefined && last.length < GROUP_MAX && bytes + own <= GROUP_BYTES_MAX) {
      last.push(source);
      bytes += own;
    } else {
      groups.push([source]);
      bytes = own;
    }
  }
  return groups;
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

/** Bytes of the elements of all tensors of a group. */
export function groupBytes(group: readonly TensorSource[]): number {
  return group.reduce((sum, { header }) => sum + headerBytes(header), 0);
}

/** Bytes of a tensor's elements. */
export function headerBytes({ dtype, shape }: TensorSource["header"]): number {
  return tensorBytes(dtype, shape);
}
