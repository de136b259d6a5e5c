import { randomUUID } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DTYPES, isDtype } from "../protocol/dtypes.ts";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { escapeName, quoteName } from "../protocol/names.ts";
import { errnoCode, fileError, io } from "../system/file-errors.ts";
import {
  discardTemporary,
  FILE_MODES,
  MODEL_DIRECTORY_MODE,
  syncDirectory,
  writeFileDurably,
} from "./atomic-write.ts";
import { badFile, badFileDtype, jsonObjectOf, parseBoundedJson } from "./file-text.ts";
import { ModelFile } from "./model-file.ts";
import { badPath, checkNamesApart } from "./model-path.ts";
import { decodePaddleHeader, PADDLE_HEADER_BYTES, writeParameterFile } from "./paddle-tar.ts";
import { removeLeftTemporaries, temporaryNameBeside } from "./temporary-files.ts";
import {
  DESCRIPTION_BYTES_MAX,
  DESCRIPTION_VALUES_MAX,
  type IncomingModel,
  isShape,
  type Metadata,
  metadataFrom,
  type OutgoingModel,
  showShape,
  TENSORS_MAX,
  type TensorHeader,
  type TensorSource,
} from "./tensor-headers.ts";

/** The file that lists the parameters of a model directory. */
const MANIFEST_FILE = "manifest.json";

const FORMAT = "nats-pserver-model";
const VERSION = 1;
/** Limits of the manifest: an object with the metadata, and a list of objects that each have a shape. */
const BOUNDS = {
  depth: 4,
  containers: 2 * TENSORS_MAX + 3,
  commas: DESCRIPTION_VALUES_MAX,
} as const;
const SAFE_FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** Contents of the manifest of a model directory. */
interface DirectoryManifest {
  readonly tensors: readonly TensorHeader[];
  readonly metadata: Metadata;
}

/**
 * Returns the name of a parameter's file in a model directory: the parameter's name, if that consists of
 * letters, digits, `_`, `-` and, not in front, `.`, as PaddlePaddle's own do; else the name escaped as in
 * subjects. Only escaped names hold a `=`, so no two parameters get the same file.
 * @throws BAD_NAME for a name no parameter can have.
 */
function parameterFileName(name: string): string {
  const escaped = escapeName(name);
  return SAFE_FILE_NAME.test(name) && name !== MANIFEST_FILE ? name : escaped;
}

/** Yields the bytes of the manifest of a model directory. */
async function* encodeManifest(model: OutgoingModel): AsyncGenerator<Uint8Array, void, undefined> {
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
async function readManifest(directory: string): Promise<DirectoryManifest> {
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
  const { format, version, metadata: metadataValue, tensors: list } = jsonObjectOf(value);
  if (format !== FORMAT || version !== VERSION) {
    const received = `${quoteName(format)}, version ${typeof version === "number" ? version : quoteName(version)}`;
    throw badFile(path, "format", `"${FORMAT}", version ${VERSION}`, received);
  }
  const metadata = metadataFrom(metadataValue);
  if (metadata === undefined) throw badFile(path, "metadata", "an object of texts", "other values");
  if (!Array.isArray(list) || list.length > TENSORS_MAX) {
    throw badFile(path, "tensors", `a list of at most ${TENSORS_MAX}`, "another value");
  }
  const tensors = list.map((entry: unknown) => checkEntry(path, jsonObjectOf(entry)));
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

/**
 * Writes a model as a directory: a file per parameter in PaddlePaddle's form, 16 bytes of header and the
 * elements, and `manifest.json`, which tells names, dtypes, shapes and metadata. The directory takes its name
 * once all of it is on disk; a model directory of this name is replaced. For a moment no directory has the
 * name; a crash at that moment leaves the old one as `.pserver-replaced-…`. Returns the number of bytes.
 * @throws BAD_PATH as {@link checkReplaceable}; DISK_FULL, IO, and what `model.chunks` throws.
 */
export async function writeDirectoryModel(
  directory: string,
  model: OutgoingModel,
): Promise<number> {
  await removeLeftTemporaries(dirname(directory));
  const temporary = temporaryNameBeside(directory);
  try {
    await io("create", temporary, mkdir(temporary, MODEL_DIRECTORY_MODE));
    let bytes = 0;
    for (const tensor of model.tensors) {
      const file = join(temporary, parameterFileName(tensor.name));
      bytes += await writeFileDurably(file, writeParameterFile(model, tensor), FILE_MODES.model);
    }
    const manifest = join(temporary, MANIFEST_FILE);
    bytes += await writeFileDurably(manifest, encodeManifest(model), FILE_MODES.model);
    await syncDirectory(temporary);
    await replaceDirectory(directory, temporary);
    return bytes;
  } catch (error) {
    throw await discardTemporary(temporary, error);
  }
}

/**
 * Refuses to replace what is not a model directory: removing the old one must not remove anything
 * that a save did not write.
 * @throws BAD_PATH if there is something else than a directory, or one that holds other files than
 * its manifest lists; IO; BAD_FILE if its manifest is damaged.
 */
export async function checkReplaceable(directory: string): Promise<void> {
  const expected = "a name that is free or that of a saved model directory";
  if ((await kindOf(directory)) === "absent") return;
  if ((await kindOf(directory)) !== "directory")
    throw badPath(expected, `the file ${directory}`, directory);
  const names = await io("list", directory, readdir(directory));
  if (names.length === 0) return;
  if (!names.includes(MANIFEST_FILE)) {
    throw badPath(expected, `${directory}, a directory without ${MANIFEST_FILE}`, directory);
  }
  const { tensors } = await readManifest(directory);
  const ownNames = new Set([
    MANIFEST_FILE,
    ...tensors.map((tensor) => parameterFileName(tensor.name)),
  ]);
  const foreign = names.find((name) => !ownNames.has(name));
  if (foreign === undefined) return;
  throw badPath(expected, `${directory}, which also holds ${quoteName(foreign)}`, directory);
}

/**
 * Reads the manifest of a model directory and the header of each of its files. Elements have no
 * checksum.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export async function readDirectoryModel(directory: string): Promise<IncomingModel> {
  const { tensors, metadata } = await readManifest(directory);
  const sources: TensorSource[] = [];
  for (const header of tensors) {
    const path = join(directory, parameterFileName(header.name));
    // Each file is open only while it is read: a model may have more than a process can open.
    const file = await openParameter(path, header);
    await file.close();
    sources.push({ header, chunks: () => readParameter(path, header) });
  }
  return { tensors: sources, skipped: [], metadata };
}

/** Returns the kind of a directory entry; a symbolic link counts as a file. */
export async function kindOf(path: string): Promise<"absent" | "directory" | "file"> {
  try {
    return (await lstat(path)).isDirectory() ? "directory" : "file";
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return "absent";
    throw fileError("examine", path, error);
  }
}

async function replaceDirectory(directory: string, replacement: string): Promise<void> {
  await checkReplaceable(directory);
  if ((await kindOf(directory)) === "absent") {
    await io("rename to", directory, rename(replacement, directory));
    await syncDirectory(dirname(directory));
    return;
  }
  // Not a temporary name: after a crash this may be the only whole model.
  const aside = join(dirname(directory), `.pserver-replaced-${randomUUID()}`);
  await io("move aside", directory, rename(directory, aside));
  try {
    await io("replace", directory, rename(replacement, directory));
  } catch (error) {
    await putBack(aside, directory, error);
    throw error;
  }
  await syncDirectory(dirname(directory));
  await io("remove the replaced model", aside, rm(aside, { recursive: true }));
}

async function putBack(aside: string, directory: string, error: unknown): Promise<void> {
  try {
    await rename(aside, directory);
  } catch (cause) {
    throw new PserverError(
      "IO",
      `${ensureError(error).message}; the model that was there is now ${aside}`,
      { path: directory, aside },
      { cause },
    );
  }
}

async function openParameter(path: string, header: TensorHeader): Promise<ModelFile> {
  const file = await ModelFile.open(path);
  try {
    const what = `parameter ${quoteName(header.name)}`;
    const paddleHeader = await file.read(0, PADDLE_HEADER_BYTES, what);
    const { valueBytes, elements } = decodePaddleHeader(path, what, paddleHeader, file.bytes);
    const expected = DTYPES[header.dtype].bytes;
    if (valueBytes !== expected)
      throw badFile(path, `bytes of a ${header.dtype}`, expected, valueBytes);
    const counted = header.shape.reduce((product, dimension) => product * dimension, 1);
    if (elements !== counted) throw badFile(path, `elements of ${what}`, counted, elements);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* readParameter(
  path: string,
  header: TensorHeader,
): AsyncGenerator<Uint8Array, void, undefined> {
  const file = await openParameter(path, header);
  try {
    yield* file.stream(
      PADDLE_HEADER_BYTES,
      file.bytes - PADDLE_HEADER_BYTES,
      quoteName(header.name),
    );
  } finally {
    await file.close();
  }
}
