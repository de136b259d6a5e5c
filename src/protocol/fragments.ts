import { PserverError } from "./errors.ts";

/** A tensor that is to be in a fragment. */
export interface FragmentTensor {
  readonly name: string;
  readonly bytes: number;
  /** Whether it is an embedding: these have a fragment of their own. */
  readonly isEmbedding?: boolean;
}

/** Name of the fragment of all embeddings in {@link balancedFragments}. */
export const EMBEDDINGS_FRAGMENT = "embeddings";

/**
 * Divides whole tensors among at most `count` fragments of nearly the same size, `f0`, `f1` and so on: the largest
 * tensor first, each into the smallest fragment so far, which is the first of several. Tensors of one size go in the
 * order of their names in UTF-8. Embeddings go into one more fragment. All clients compute the same.
 * @returns the fragment of each tensor, by its name.
 * @throws BAD_VALUE unless `count` is a whole number from 1 on, sizes are not negative, and names differ.
 */
export function balancedFragments(
  tensors: readonly FragmentTensor[],
  count: number,
): Map<string, string> {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw badValue("count", "a whole number from 1 on", count);
  }
  const fragments = new Map<string, string>();
  const filled: number[] = new Array(Math.min(count, tensors.length)).fill(0);
  for (const { name, bytes, isEmbedding = false } of inOrder(tensors)) {
    if (fragments.has(name)) throw badValue("tensors", "each name once", name);
    if (isEmbedding) {
      fragments.set(name, EMBEDDINGS_FRAGMENT);
      continue;
    }
    const least = filled.indexOf(Math.min(...filled));
    filled[least] = (filled[least] ?? 0) + bytes;
    fragments.set(name, `f${least}`);
  }
  return fragments;
}

function inOrder(tensors: readonly FragmentTensor[]): FragmentTensor[] {
  const encoder = new TextEncoder();
  const rows = tensors.map((tensor) => {
    const { name, bytes } = tensor;
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw badValue(`bytes of ${JSON.stringify(name)}`, "a whole number from 0 on", bytes);
    }
    return { tensor, name: encoder.encode(name) };
  });
  rows.sort((a, b) => b.tensor.bytes - a.tensor.bytes || compareBytes(a.name, b.name));
  return rows.map(({ tensor }) => tensor);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function badValue(what: string, expected: string, received: string | number): PserverError {
  return new PserverError("BAD_VALUE", `${what}: expected ${expected}; received ${received}`, {
    expected,
    received,
  });
}
