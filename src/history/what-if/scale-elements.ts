import type { Dtype } from "../../protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../protocol/encoding/elements.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import { l2Norm } from "../../protocol/tensor.ts";
import { viewElements } from "../element-view.ts";

/** Elements of a gradient as a record has them: a view of its bytes, which may begin anywhere. */
export interface RecordElements {
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  readonly bytes: Uint8Array;
}

/** The L2 norm of elements; 0 for integers. */
export function normOf(elements: RecordElements): number {
  return l2Norm(readElements(elements));
}

/** Multiplies float elements by a factor, in place; encoded ones are rounded again. */
export function scaleElements(elements: RecordElements, factor: number): void {
  const data = readElements(elements);
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return;
  for (let i = 0; i < data.length; i++) data[i] = (data[i] ?? 0) * factor;
  const { encoding, bytes } = elements;
  if (encoding !== undefined && data instanceof Float32Array) encodeElements(encoding, data, bytes);
  else bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

/** A copy of the elements, as their type has them. */
function readElements({ dtype, encoding, bytes }: RecordElements) {
  if (encoding === undefined) return viewElements(dtype, new Uint8Array(bytes));
  const floats = new Float32Array(bytes.length / 2);
  decodeElements(encoding, bytes, floats);
  return floats;
}
