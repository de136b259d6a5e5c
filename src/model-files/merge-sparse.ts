import { PserverError } from "../protocol/errors.ts";
import { mismatch } from "../protocol/mismatch.ts";
import { quoteName } from "../protocol/names.ts";
import { badName, checkHeaders, dataBytes, showShape, type TensorHeader } from "./tensor.ts";

const SHARD_NAME = /^(.+):sparse-(0|[1-9]\d{0,8})$/s;
const LISTED_MAX = 10;

/** A tensor of the file and the parameters its bytes are made of, in order along axis 0. */
export interface MergedTensor<Header extends TensorHeader = TensorHeader> {
  readonly header: TensorHeader;
  readonly parts: readonly Header[];
}

/**
 * Joins the parameters `<name>:sparse-0` … `<name>:sparse-<n-1>` along axis 0 into one tensor
 * `<name>`, in the place of the first of them; every other parameter stays as it is.
 * @throws MISSING_SHARD listing the numbers that lack below the highest; BAD_NAME if `<name>` is a
 * parameter too; BAD_DTYPE, BAD_SHAPE if shards differ in more than their rows; and what
 * {@link checkHeaders} refuses.
 */
export function mergeSparse<Header extends TensorHeader>(
  headers: readonly Header[],
): MergedTensor<Header>[] {
  checkHeaders(headers);
  const shards = shardsByName(headers);
  const taken = headers.find(({ name }) => shards.has(name) && !SHARD_NAME.test(name));
  if (taken !== undefined) throw nameTaken(taken.name);
  return headers.flatMap((header) => {
    const name = SHARD_NAME.exec(header.name)?.[1];
    if (name === undefined) return [{ header, parts: [header] }];
    const parts = shards.get(name) ?? [];
    return parts[0] === header ? [mergeShards(name, parts)] : [];
  });
}

/**
 * The sparse shards among these parameters, by the name of the tensor that a save joins them into.
 */
export function shardsByName<Header extends TensorHeader>(
  headers: readonly Header[],
): ReadonlyMap<string, readonly Header[]> {
  const shards = new Map<string, Header[]>();
  for (const header of headers) {
    const name = SHARD_NAME.exec(header.name)?.[1];
    if (name === undefined) continue;
    const found = shards.get(name);
    if (found === undefined) shards.set(name, [header]);
    else found.push(header);
  }
  return shards;
}

function mergeShards<Header extends TensorHeader>(
  name: string,
  unordered: readonly Header[],
): MergedTensor<Header> {
  const parts = [...unordered].sort((a, b) => shardNumber(a) - shardNumber(b));
  checkComplete(name, parts.map(shardNumber));
  const [first] = parts;
  if (first === undefined) throw new PserverError("INTERNAL", `no shards of ${quoteName(name)}`);
  const row = JSON.stringify(first.shape.slice(1));
  let rows = 0;
  for (const part of parts) {
    if (part.dtype !== first.dtype) {
      throw differs(
        "BAD_DTYPE",
        part,
        `dtype ${first.dtype} as ${quoteName(first.name)}`,
        part.dtype,
      );
    }
    const [partRows] = part.shape;
    if (partRows === undefined)
      throw differs("BAD_SHAPE", part, "at least one dimension", "a scalar");
    if (JSON.stringify(part.shape.slice(1)) !== row) {
      const expected = `rows of shape ${row} as ${quoteName(first.name)}`;
      throw differs("BAD_SHAPE", part, expected, `shape ${showShape(part.shape)}`);
    }
    rows += partRows;
  }
  const header = { name, dtype: first.dtype, shape: [rows, ...first.shape.slice(1)] };
  dataBytes(header);
  return { header, parts };
}

function shardNumber({ name }: TensorHeader): number {
  return Number(SHARD_NAME.exec(name)?.[2]);
}

/** Iterates over the shards that there are, because a shard may have any number. */
function checkComplete(name: string, numbers: readonly number[]): void {
  const missing: number[] = [];
  let expected = 0;
  let missingCount = 0;
  for (const index of numbers) {
    missingCount += index - expected;
    while (expected < index && missing.length < LISTED_MAX) missing.push(expected++);
    expected = index + 1;
  }
  if (missingCount === 0) return;
  const listed = missing.map((index) => `${name}:sparse-${index}`);
  const more = missingCount > missing.length ? ` and ${missingCount - missing.length} more` : "";
  throw new PserverError(
    "MISSING_SHARD",
    `shards of ${quoteName(name)}: expected 0 to ${expected - 1}; missing ${listed.map(quoteName).join(", ")}${more}`,
    { parameter: name, expected, received: numbers.length, missing },
  );
}

function nameTaken(name: string): PserverError {
  return badName(name, `no parameter of this name beside shards ${quoteName(`${name}:sparse-…`)}`);
}

function differs(
  code: "BAD_DTYPE" | "BAD_SHAPE",
  part: TensorHeader,
  expected: string,
  received: string,
): PserverError {
  const details = { parameter: part.name };
  return mismatch(code, `shard ${quoteName(part.name)}`, expected, received, details);
}
