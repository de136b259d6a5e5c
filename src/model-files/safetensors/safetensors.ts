import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import {
  conversionOf,
  convertElements,
  heldAs,
  type StoredType,
  type StoredTypeName,
  storedBytes,
} from "../element-types.ts";
import { badFile, isJsonObject, jsonObjectOf, parseBoundedJson } from "../file-text.ts";
import type { ModelFile } from "../model-file.ts";
import {
  badName,
  DESCRIPTION_BYTES_MAX,
  DESCRIPTION_VALUES_MAX,
  dataBytes,
  elementsOf,
  encodeMetadata,
  type IncomingModel,
  type Metadata,
  metadataFrom,
  type OutgoingModel,
  showShape,
  TENSORS_MAX,
  type TensorSource,
} from "../tensor-headers.ts";
import { separateOptimizers } from "./optimizer-state.ts";

/** The header's key for metadata, which no tensor can have. */
const METADATA_KEY = "__metadata__";

/** The format's names of the element types of parameters. */
const SAFETENSORS_DTYPES = {
  int32: "I32",
  uint32: "U32",
  int64: "I64",
  uint64: "U64",
  float32: "F32",
  float64: "F64",
  bool: "BOOL",
  uint8: "U8",
  int8: "I8",
  float16: "F16",
  bfloat16: "BF16",
} as const satisfies Record<Dtype, string>;

/** The format's names of all element types that are read. */
const READ_TYPES: Readonly<Record<StoredTypeName, string>> = {
  ...SAFETENSORS_DTYPES,
  uint16: "U16",
  int16: "I16",
};

const ALIGNMENT = 8;

/**
 * Yields the bytes of a safetensors file. Tensors of longer elements come first, so that with the padded
 * header every element is aligned in the file.
 * @throws BAD_NAME for a tensor called `__metadata__`; TOO_LARGE for a header above 100 MB; what
 * `model.chunks` throws.
 */
export async function* writeSafetensors(
  model: OutgoingModel,
): AsyncGenerator<Uint8Array, void, undefined> {
  const tensors = [...model.tensors].sort((a, b) => DTYPES[b.dtype].bytes - DTYPES[a.dtype].bytes);
  // The JSON is built from strings: an object would lose a parameter called __proto__.
  const fields: string[] = [];
  const metadata = encodeMetadata(model.metadata);
  if (metadata !== "") fields.push(`"${METADATA_KEY}":${metadata}`);
  let offset = 0;
  for (const tensor of tensors) {
    if (tensor.name === METADATA_KEY)
      throw badName(tensor.name, "any name but the format's own key");
    const end = offset + dataBytes(tensor);
    const dtype = SAFETENSORS_DTYPES[tensor.dtype];
    const entry = { dtype, shape: tensor.shape, data_offsets: [offset, end] };
    fields.push(`${JSON.stringify(tensor.name)}:${JSON.stringify(entry)}`);
    offset = end;
  }
  const text = new TextEncoder().encode(`{${fields.join(",")}}`);
  const headerBytes = Math.ceil(text.byteLength / ALIGNMENT) * ALIGNMENT;
  if (headerBytes > DESCRIPTION_BYTES_MAX) {
    throw new PserverError(
      "TOO_LARGE",
      `safetensors header: expected at most ${DESCRIPTION_BYTES_MAX} bytes; received ${headerBytes}`,
      { expected: DESCRIPTION_BYTES_MAX, received: headerBytes },
    );
  }
  const header = new Uint8Array(8 + headerBytes).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(headerBytes), true);
  header.set(text, 8);
  yield header;
  for (const tensor of tensors) yield* model.chunks(tensor);
}

const TENSOR_FIELDS = ["data_offsets", "dtype", "shape"];
const typesByName = new Map(
  (Object.keys(READ_TYPES) as StoredTypeName[]).map((name): [string, StoredType] => [
    READ_TYPES[name],
    { name, isLittleEndian: true },
  ]),
);

interface PlacedTensor {
  readonly name: string;
  /** The format's name of its type. */
  readonly type: string;
  /** Undefined for one that no parameter can hold. */
  readonly stored: StoredType | undefined;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/**
 * Reads the header of a safetensors file and checks all of it: the tensors must fill the file without
 * gap or overlap. What optimizers keep is separated from the parameters. The format has no checksum, so changed elements
 * go unnoticed.
 * @throws BAD_FILE, BAD_VERSION, IO.
 */
export async function readSafetensors(file: ModelFile): Promise<IncomingModel> {
  const prefix = await file.read(0, 8, "header length");
  const headerBytes = Number(new DataView(prefix.buffer).getBigUint64(0, true));
  if (headerBytes < 2 || headerBytes > DESCRIPTION_BYTES_MAX) {
    const expected = `2 to ${DESCRIPTION_BYTES_MAX}`;
    throw badFile(file.path, "header length", expected, headerBytes);
  }
  const dataStart = 8 + headerBytes;
  const fields = parseHeader(file.path, await file.read(8, headerBytes, "header"));
  const placed: PlacedTensor[] = [];
  let metadata: Metadata = {};
  for (const [name, value] of fields) {
    if (name !== METADATA_KEY) {
      placed.push(parseTensor(file.path, name, value));
      continue;
    }
    // The format's own reader takes null for none.
    const parsed = metadataFrom(value ?? {});
    if (parsed === undefined)
      throw badFile(file.path, METADATA_KEY, "an object of texts", "other values");
    metadata = parsed;
  }
  checkLayout(file.path, placed, file.bytes - dataStart);
  const tensors = placed.flatMap(({ name, stored, shape, begin, end }): TensorSource[] => {
    if (stored === undefined) return [];
    const conversion = conversionOf(stored);
    const read = () => file.stream(dataStart + begin, end - begin, `tensor ${quoteName(name)}`);
    return [
      {
        header: { name, dtype: heldAs(stored), shape },
        ...(conversion === undefined ? {} : { conversion }),
        chunks: () => convertElements(read(), stored),
      },
    ];
  });
  const skipped = placed.filter(({ stored }) => stored === undefined);
  return separateOptimizers(file.path, {
    tensors,
    skipped: skipped.map(({ name, type }) => ({ name, type })),
    metadata,
  });
}

/** Limits of the header: an object of objects that each have two lists, shape and offsets. */
const BOUNDS = {
  depth: 3,
  containers: 3 * TENSORS_MAX + 2,
  commas: DESCRIPTION_VALUES_MAX,
} as const;

function parseHeader(path: string, bytes: Uint8Array): [string, unknown][] {
  const { text, value: parsed, colons } = parseBoundedJson(path, "header", bytes, BOUNDS);
  if (!text.startsWith("{") || !isJsonObject(parsed)) {
    throw badFile(path, "header", "a JSON object from the first byte", quoteName(text));
  }
  const fields = Object.entries(parsed);
  if (fields.length > TENSORS_MAX) {
    throw badFile(path, "tensors", `at most ${TENSORS_MAX}`, fields.length);
  }
  let keys = fields.length;
  for (const [name, value] of fields) {
    if (name === METADATA_KEY && value === null) continue;
    if (!isJsonObject(value))
      throw badFile(path, `header of ${quoteName(name)}`, "an object", typeof value);
    keys += Object.keys(value).length;
  }
  // JSON.parse keeps only the last of two equal keys, but the text has a colon for each.
  if (colons !== keys)
    throw badFile(path, "header", "each key once, in flat objects", `${colons} keys`);
  return fields;
}

function parseTensor(path: string, name: string, value: unknown): PlacedTensor {
  const what = `tensor ${quoteName(name)}`;
  if (name === "" || !name.isWellFormed()) throw badFile(path, what, "a well-formed name", "none");
  const fields = jsonObjectOf(value);
  const names = Object.keys(fields).sort();
  if (names.join() !== TENSOR_FIELDS.join()) {
    throw badFile(path, `fields of ${what}`, TENSOR_FIELDS.join(", "), quoteName(names.join(", ")));
  }
  const { dtype: type, shape, data_offsets: offsets } = fields;
  if (typeof type !== "string") throw badFile(path, `dtype of ${what}`, "text", typeof type);
  const elements = elementsOf(shape);
  if (elements === undefined)
    throw badFile(path, `shape of ${what}`, "a list of counts", showShape(shape));
  const [begin, end] = Array.isArray(offsets) && offsets.length === 2 ? offsets : [];
  const isRange = Number.isSafeInteger(begin) && begin >= 0 && Number.isSafeInteger(end);
  const stored = typesByName.get(type);
  const bytes = stored === undefined ? undefined : elements * storedBytes(stored);
  if (!isRange || end < begin || (bytes !== undefined && end !== begin + bytes)) {
    const expected = `${bytes ?? "the"} bytes for ${quoteName(type)} of shape ${showShape(shape)}`;
    throw badFile(path, `offsets of ${what}`, expected, showShape(offsets));
  }
  return { name, type, stored, shape: shape as readonly number[], begin, end };
}

function checkLayout(path: string, tensors: readonly PlacedTensor[], dataBytes: number): void {
  const inOrder = [...tensors].sort((a, b) => a.begin - b.begin || a.end - b.end);
  let position = 0;
  for (const { name, begin, end } of inOrder) {
    if (begin !== position) {
      const what = `offset of tensor ${quoteName(name)}, without gap or overlap`;
      throw badFile(path, what, position, begin);
    }
    position = end;
  }
  if (position !== dataBytes) throw badFile(path, "bytes after the header", position, dataBytes);
}

/**
 * Gives tensors the names under which they are known elsewhere. `save_model` of safetensors writes tied weights
 * once, and into the metadata their other names, each with the one that it has written. A tensor whose own name
 * is not known gets another name of it that is.
 */
export function underKnownNames<Tensor extends Pick<TensorSource, "header">>(
  tensors: readonly Tensor[],
  metadata: Metadata,
  known: ReadonlySet<string>,
): Tensor[] {
  const own = new Set(tensors.map(({ header }) => header.name));
  const others = new Map<string, string>();
  for (const [other, name] of Object.entries(metadata)) {
    if (known.has(other) && !own.has(other)) others.set(name, other);
  }
  return tensors.map((tensor) => {
    const { header } = tensor;
    const other = known.has(header.name) ? undefined : others.get(header.name);
    return other === undefined ? tensor : { ...tensor, header: { ...header, name: other } };
  });
}
