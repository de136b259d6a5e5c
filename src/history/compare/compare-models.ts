import { mergeSparse, type TensorHeader } from "../../model-files/index.ts";
import { DTYPES, type TensorData } from "../../protocol/dtypes.ts";
import { sameShape } from "../../protocol/tensor.ts";
import { viewElements } from "../element-view.ts";
import { alignedPieces } from "./aligned-pieces.ts";
import { DifferenceTally, type TensorDifference } from "./difference.ts";

/** A tensor of one of two models that are compared. */
export interface ComparedTensor {
  readonly header: TensorHeader;
  /** Its bytes, little-endian, in C order. */
  chunks(): AsyncIterable<Uint8Array>;
}

/** What was found out about one parameter. */
export type ParameterDifference =
  | { readonly kind: "only-a" | "only-b"; readonly name: string; readonly header: TensorHeader }
  | {
      readonly kind: "other-form";
      readonly name: string;
      readonly a: TensorHeader;
      readonly b: TensorHeader;
    }
  | {
      readonly kind: "compared";
      readonly name: string;
      readonly header: TensorHeader;
      readonly difference: TensorDifference;
    };

/** How models are compared. */
export interface CompareOptions {
  /** Prints an element. */
  readonly show: (data: TensorData, index: number) => string;
  readonly signal: AbortSignal;
  /** Told now and then the bytes of A that were compared, of all that both have. */
  readonly onProgress?: (doneBytes: number) => void;
}

/**
 * Compares two models parameter by parameter, by name; holds a few MiB of them at a time.
 * @throws what reading them throws; the reason of the signal.
 */
export async function* compareModels(
  a: readonly ComparedTensor[],
  b: readonly ComparedTensor[],
  options: CompareOptions,
): AsyncGenerator<ParameterDifference, void, undefined> {
  const [byNameA, byNameB] = [byName(a), byName(b)];
  let doneBytes = 0;
  const onProgress = (bytes: number): void => options.onProgress?.(doneBytes + bytes);
  for (const name of [...new Set([...byNameA.keys(), ...byNameB.keys()])].sort()) {
    const [left, right] = [byNameA.get(name), byNameB.get(name)];
    if (left === undefined || right === undefined) {
      const header = (left ?? right)?.header;
      const kind = left === undefined ? "only-b" : "only-a";
      if (header !== undefined) yield { kind, name, header };
    } else if (!isSameForm(left.header, right.header)) {
      yield { kind: "other-form", name, a: left.header, b: right.header };
    } else {
      const difference = await compareTensors(left, right, { ...options, onProgress });
      doneBytes += difference.elements * DTYPES[left.header.dtype].bytes;
      yield { kind: "compared", name, header: left.header, difference };
    }
  }
}

/** Whether two models agree in this parameter. */
export function isEqual(found: ParameterDifference): boolean {
  return found.kind === "compared" && found.difference.differing === 0;
}

/** Tensors as a save joins them: those of sparse shards as one. */
export function joinSparse(tensors: readonly ComparedTensor[]): ComparedTensor[] {
  const byHeader = new Map(tensors.map((tensor) => [tensor.header, tensor]));
  return mergeSparse(tensors.map(({ header }) => header)).map(({ header, parts }) => ({
    header,
    chunks: async function* () {
      for (const part of parts) yield* byHeader.get(part)?.chunks() ?? [];
    },
  }));
}

async function compareTensors(
  a: ComparedTensor,
  b: ComparedTensor,
  { show, signal, onProgress }: CompareOptions,
): Promise<TensorDifference> {
  const { dtype } = a.header;
  const tally = new DifferenceTally(show);
  const others = alignedPieces(b.chunks());
  let doneBytes = 0;
  for await (const piece of alignedPieces(a.chunks())) {
    signal.throwIfAborted();
    const { value: other = new Uint8Array(0) } = await others.next();
    tally.take(viewElements(dtype, piece), viewElements(dtype, other));
    doneBytes += piece.length;
    onProgress?.(doneBytes);
  }
  return tally.result;
}

function byName(tensors: readonly ComparedTensor[]): Map<string, ComparedTensor> {
  return new Map(tensors.map((tensor) => [tensor.header.name, tensor]));
}

function isSameForm(a: TensorHeader, b: TensorHeader): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}
