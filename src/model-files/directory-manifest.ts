import { join } from "node:path";
import { DTYPES, isDtype } from "../protocol/dtypes.ts";
import { escapeName, quoteName } from "../protocol/names.ts";
import { badFile, badFileDtype } from "./bad-file.ts";
import { parseBoundedJson } from "./json-bounds.ts";
import { recordOf } from "./json-record.ts";
import { checkNamesApart } from "./member-name.ts";
import { type Metadata, metadataFrom } from "./metadata.ts";
import { ModelFile } from "./model-file.ts";
import {
  DESCRIPTION_BYTES_MAX,
  DESCRIPTION_VALUES_MAX,
  isShape,
  type OutgoingModel,
  showShape,
  TENSORS_MAX,
  type TensorHeader,
} from "./tensor.ts";

/** The file that lists the parameters of a model directory. */
export const MANIFEST_FILE = "manifest.json";

const FORMAT = "nats-pserver-model";
const VERSION = 1;
/** An object with the metadata and a list of objects, each with its shape. */
const BOUNDS = {
  depth: 4,
  containers: 2 * TENSORS_MAX + 3,
  commas: DESCRIPTION_VALUES_MAX,
} as const;
const SAFE_FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** Contents of the manifest of a model directory. */
export interface DirectoryManifest {
  readonly tensors: readonly TensorHeader[];
  readonly metadata: Metadata;
}

/**
 * The file of a parameter in a model directory: its name, if that is made of letters, digits, `_`,
 * `-` and, not in front, `.`, as PaddlePaddle's own are; else the name escaped as in subjects. Only
 * escaped names hold a `=`, so no two parameters meet.
 * @throws BAD_NAME for a name no parameter can have.
 */
export function parameterFileName(name: string): string {
  const escaped = escapeName(name);
  return SAFE_FILE_NAME.test(name) && name !== MANIFEST_FILE ? name : escaped;
}

/** The bytes of the manifest of a model directory. */
export async function* encodeManifest(
  model: OutgoingModel,
): AsyncGenerator<Uint8Array, void, undefined> {
  const tensors = model.tensors.map(({ name, dtype, shape }) => ({
    name,
    file: parameterFileName(name),
    dtype,
    shape,
  }));
  const manifest = { format: FORMAT, version: VERSION, metadata: model.metadata, tensors };
  yield new TextEncoder().encode(`${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * Reads and checks the manifest of a model directory.
 * @throws BAD_FILE, BAD_DTYPE, IO (also if there is none).
 */
export async function readManifest(directory: string): Promise<DirectoryManifest> {
  const path = join(directory, MANIFEST_FILE);
  const file = await ModelFile.open(path);
  try {
    if (file.bytes > DESCRIPTION_BYTES_MAX) {
      throw badFile(path, "bytes", `at most ${DESCRIPTION_BYTES_MAX}`, file.bytes);
    }
    const bytes = await file.read(0, file.bytes, "manifest");
    return checkManifest(path, parseBoundedJson(path, "manifest", bytes, BOUNDS).value);
  } finally {
    await file.close();
  }
}

function checkManifest(path: string, value: unknown): DirectoryManifest {
  const { format, version, metadata: metadataValue, tensors: list } = recordOf(value);
  if (format !== FORMAT || version !== VERSION) {
    const received = `${quoteName(format)}, version ${typeof version === "number" ? version : quoteName(version)}`;
    throw badFile(path, "format", `"${FORMAT}", version ${VERSION}`, received);
  }
  const metadata = metadataFrom(metadataValue);
  if (metadata === undefined) throw badFile(path, "metadata", "an object of texts", "other values");
  if (!Array.isArray(list) || list.length > TENSORS_MAX) {
    throw badFile(path, "tensors", `a list of at most ${TENSORS_MAX}`, "another value");
  }
  const tensors = list.map((entry: unknown) => checkEntry(path, recordOf(entry)));
  checkNamesApart(path, tensors);
  return { tensors, metadata };
}

function checkEntry(path: string, entry: Readonly<Record<string, unknown>>): TensorHeader {
  const { name, file, dtype, shape } = entry;
  if (typeof name !== "string") throw badFile(path, "name", "text", typeof name);
  // The file follows from the name: a path in the manifest could lead anywhere.
  const expected = parameterFileName(name);
  if (file !== expected)
    throw badFile(path, `file of ${quoteName(name)}`, expected, quoteName(file));
  if (!isDtype(dtype)) {
    throw badFileDtype(path, quoteName(name), Object.keys(DTYPES).join(", "), quoteName(dtype));
  }
  if (!isShape(shape)) {
    throw badFile(path, `shape of ${quoteName(name)}`, "a list of counts", showShape(shape));
  }
  return { name, dtype, shape };
}
