import {
  decodeParameterConfig as decodeMessage,
  encodeParameterConfig,
  type ParameterConfigMessage,
} from "../protocol/config/paddle/paddle.ts";
import { DTYPES, type Dtype, isDtype } from "../protocol/dtypes.ts";
import { ensureError, type PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";
import { badFile, badFileDtype } from "./file-text.ts";
import type { ModelFile } from "./model-file.ts";
import { checkNamesApart, memberName, trueNameOf } from "./model-path.ts";
import { readTar, type TarEntry, type TarMember, writeTar } from "./tar.ts";
import {
  badName,
  dataBytes,
  elementsOf,
  encodeMetadata,
  type IncomingModel,
  type OutgoingModel,
  parseMetadata,
  showShape,
  TENSORS_MAX,
  type TensorHeader,
  type TensorSource,
} from "./tensor-headers.ts";

/** Bytes before the elements of a PaddlePaddle parameter file. */
export const PADDLE_HEADER_BYTES = 16;

const VERSION = 0;

/**
 * Yields the bytes of a parameter file: u32 version, u32 bytes of an element, u64 elements, then the
 * elements.
 */
export async function* writeParameterFile(
  model: OutgoingModel,
  tensor: TensorHeader,
): AsyncGenerator<Uint8Array, void, undefined> {
  const valueBytes = DTYPES[tensor.dtype].bytes;
  const view = new DataView(new ArrayBuffer(PADDLE_HEADER_BYTES));
  view.setUint32(0, VERSION, true);
  view.setUint32(4, valueBytes, true);
  view.setBigUint64(8, BigInt(dataBytes(tensor) / valueBytes), true);
  yield new Uint8Array(view.buffer);
  yield* model.chunks(tensor);
}

/** Header of a parameter file; the elements fill the rest of the file. */
export interface PaddleHeader {
  readonly valueBytes: number;
  readonly elements: number;
}

/**
 * Reads the header of a parameter file of `fileBytes` bytes.
 * @throws BAD_FILE unless the version is 0, elements take 1, 2, 4 or 8 bytes, and they fill the file.
 */
export function decodePaddleHeader(
  path: string,
  what: string,
  header: Uint8Array,
  fileBytes: number,
): PaddleHeader {
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  const version = view.getUint32(0, true);
  const valueBytes = view.getUint32(4, true);
  const elements = Number(view.getBigUint64(8, true));
  if (version !== VERSION) throw badFile(path, `version of ${what}`, VERSION, version);
  if (![1, 2, 4, 8].includes(valueBytes)) {
    throw badFile(path, `bytes of an element of ${what}`, "1, 2, 4 or 8", valueBytes);
  }
  const expected = PADDLE_HEADER_BYTES + elements * valueBytes;
  if (fileBytes !== expected) throw badFile(path, `bytes of ${what}`, expected, fileBytes);
  return { valueBytes, elements };
}

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
export function decodeTensorConfig(path: string, what: string, bytes: Uint8Array): TensorConfig {
  const { name, size, dims = [] } = messageOf(path, what, bytes);
  const [elements = 0, ...shape] = [size, ...dims].map((value) => {
    if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
    throw badFile(path, what, "a number below 2^53", String(value));
  });
  return { name, size: elements, dims: shape };
}

function messageOf(path: string, what: string, bytes: Uint8Array): ParameterConfigMessage {
  try {
    return decodeMessage(bytes);
  } catch (cause) {
    throw badFile(path, what, "a ParameterConfig", ensureError(cause).message, cause);
  }
}

const CONFIG_SUFFIX = ".protobuf";
const CONFIG_BYTES_MAX = 1024 * 1024;
/** Keys of our pax records, which other programs ignore. */
const ATTRIBUTES = {
  dtype: "PSERVER.dtype",
  shape: "PSERVER.shape",
  metadata: "PSERVER.metadata",
  name: "PSERVER.name",
} as const;

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
export async function* writePaddleTar(
  model: OutgoingModel,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const { name } of model.tensors) {
    if (name.endsWith(CONFIG_SUFFIX)) throw badName(name, `a name not ending in ${CONFIG_SUFFIX}`);
  }
  const metadata = encodeMetadata(model.metadata);
  const members = model.tensors.flatMap((tensor) => membersOf(model, tensor));
  yield* writeTar(members, metadata === "" ? {} : { [ATTRIBUTES.metadata]: metadata });
}

function membersOf(model: OutgoingModel, tensor: TensorHeader): TarMember[] {
  const { dtype, shape } = tensor;
  const { name, trueName } = memberName(tensor.name);
  const size = elementsOf(shape) ?? 0;
  const config = encodeParameterConfig({ name, size, dims: shape });
  return [
    {
      name,
      bytes: PADDLE_HEADER_BYTES + dataBytes(tensor),
      attributes: {
        ...(dtype === "float32" ? {} : { [ATTRIBUTES.dtype]: dtype }),
        ...(shape.length > 0 ? {} : { [ATTRIBUTES.shape]: "[]" }),
        ...(trueName === undefined ? {} : { [ATTRIBUTES.name]: JSON.stringify(trueName) }),
      },
      chunks: () => writeParameterFile(model, tensor),
    },
    {
      name: name + CONFIG_SUFFIX,
      bytes: config.byteLength,
      attributes: {},
      chunks: async function* () {
        yield config;
      },
    },
  ];
}

/**
 * Reads the table of contents and the parameter configurations of a `model.tar`, also one that was unpacked and
 * packed again as a directory. A parameter without
 * `dims` has the shape `[1, size]`, as PaddlePaddle gives it; one of 8-byte values without
 * `PSERVER.dtype` is float64. The format has no checksum of elements.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export async function readPaddleTar(file: ModelFile): Promise<IncomingModel> {
  const { entries, globalAttributes } = await readTar(file, Object.values(ATTRIBUTES));
  const values = new Map<string, TarEntry>();
  const configs = new Map<string, TarEntry>();
  for (const entry of entries) {
    const isConfig = entry.name.endsWith(CONFIG_SUFFIX);
    const target = isConfig ? configs : values;
    const name = isConfig ? entry.name.slice(0, -CONFIG_SUFFIX.length) : entry.name;
    if (name === "" || target.has(name)) {
      throw badFile(file.path, "members", "each name once, none empty", quoteName(entry.name));
    }
    target.set(name, entry);
  }
  if (values.size > TENSORS_MAX) {
    throw badFile(file.path, "parameters", `at most ${TENSORS_MAX}`, values.size);
  }
  const tensors: TensorSource[] = [];
  for (const [name, entry] of values) {
    const config = configs.get(name);
    if (config === undefined) throw lonely(file.path, entry.name, name + CONFIG_SUFFIX);
    tensors.push(await readTensor(file, entry, config));
  }
  for (const [name, config] of configs) {
    if (!values.has(name)) throw lonely(file.path, config.name, name);
  }
  checkNamesApart(
    file.path,
    tensors.map(({ header }) => header),
  );
  const metadata = parseMetadata(globalAttributes.get(ATTRIBUTES.metadata) ?? "{}");
  if (metadata === undefined) {
    throw badFile(file.path, ATTRIBUTES.metadata, "a JSON object of texts", "other text");
  }
  return { tensors, skipped: [], metadata };
}

function lonely(path: string, name: string, partner: string): PserverError {
  return badFile(path, `members beside ${quoteName(name)}`, quoteName(partner), "none");
}

async function readTensor(
  file: ModelFile,
  entry: TarEntry,
  configEntry: TarEntry,
): Promise<TensorSource> {
  const { name, bytes, dataAt } = entry;
  const what = `parameter ${quoteName(name)}`;
  if (bytes < PADDLE_HEADER_BYTES) {
    throw badFile(file.path, `bytes of ${what}`, `at least ${PADDLE_HEADER_BYTES}`, bytes);
  }
  const header = await file.read(dataAt, PADDLE_HEADER_BYTES, what);
  const { valueBytes, elements } = decodePaddleHeader(file.path, what, header, bytes);
  const dtype = dtypeFrom(file.path, what, entry, valueBytes);
  const config = await readConfig(file, what, configEntry);
  const isOwnName = config.name === name || config.name === withoutDot(name);
  if (!isOwnName) {
    const expected = quoteName(withoutDot(name));
    throw badFile(
      file.path,
      `name in the configuration of ${what}`,
      expected,
      quoteName(config.name),
    );
  }
  const isScalar = entry.attributes.get(ATTRIBUTES.shape) === "[]" && config.dims.length === 0;
  const withoutDims = isScalar ? [] : [1, elements];
  const shape = config.dims.length > 0 ? config.dims : withoutDims;
  if (config.size !== elements || elementsOf(shape) !== elements) {
    const received = `size ${config.size}, dims ${showShape(config.dims)}`;
    throw badFile(file.path, `configuration of ${what}`, `${elements} elements`, received);
  }
  return {
    header: {
      name: trueNameOf(file.path, config.name, entry.attributes.get(ATTRIBUTES.name)),
      dtype,
      shape,
    },
    chunks: () => file.stream(dataAt + PADDLE_HEADER_BYTES, bytes - PADDLE_HEADER_BYTES, what),
  };
}

/** Returns a member's name without the "./" that `tar -C DIR .` puts before it. */
function withoutDot(name: string): string {
  return name.replace(/^(?:\.\/)+/, "");
}

function dtypeFrom(path: string, what: string, entry: TarEntry, valueBytes: number): Dtype {
  const dtype =
    entry.attributes.get(ATTRIBUTES.dtype) ?? (valueBytes === 4 ? "float32" : "float64");
  if (!isDtype(dtype)) {
    throw badFileDtype(path, what, Object.keys(DTYPES).join(", "), quoteName(dtype));
  }
  if (DTYPES[dtype].bytes !== valueBytes) {
    throw badFile(path, `bytes of a ${dtype} of ${what}`, DTYPES[dtype].bytes, valueBytes);
  }
  return dtype;
}

async function readConfig(file: ModelFile, what: string, entry: TarEntry): Promise<TensorConfig> {
  if (entry.bytes > CONFIG_BYTES_MAX) {
    throw badFile(
      file.path,
      `configuration of ${what}`,
      `at most ${CONFIG_BYTES_MAX} bytes`,
      entry.bytes,
    );
  }
  const bytes = await file.read(entry.dataAt, entry.bytes, `configuration of ${what}`);
  return decodeTensorConfig(file.path, `configuration of ${what}`, bytes);
}
