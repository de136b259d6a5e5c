import { DTYPES, isDtype } from "../protocol/dtypes.js";
import { quoteName } from "../protocol/names.js";
import { badFile, badFileDtype } from "./file-text.js";
import { checkNamesApart, memberName, trueNameOf } from "./model-path.js";
import { DESCRIPTION_BYTES_MAX, dataBytes, elementsOf, encodeMetadata, isShape, parseMetadata, showShape, } from "./tensor-headers.js";
import { readZip, unpack, unpackBeginning } from "./zip-reader.js";
import { writeZip } from "./zip-writer.js";
// Each token is found in one step without going back, so hostile text costs no more than its length.
const TOKEN = /\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(\d+)L?(?![A-Za-z0-9_])|(True|False)(?![A-Za-z0-9_])|([{}()[\],:]))/y;
const DEPTH_MAX = 8;
const CLOSING = { "(": ")", "[": "]" };
/**
 * Parses a Python dictionary of an array header: strings without escapes, `True`, `False`, whole numbers,
 * tuples and lists. Undefined for anything else, and if a key occurs twice.
 */
function parsePythonDict(text) {
    const tokens = tokensOf(text.trim());
    if (tokens === undefined || tokens[0]?.mark !== "{")
        return undefined;
    const reader = new TokenReader(tokens, 1);
    const dict = new Map();
    while (!reader.take("}")) {
        const key = reader.value(0);
        if (typeof key !== "string" || dict.has(key) || !reader.take(":"))
            return undefined;
        const value = reader.value(0);
        if (value === undefined)
            return undefined;
        dict.set(key, value);
        if (!reader.take(",") && !reader.sees("}"))
            return undefined;
    }
    return reader.atEnd() ? dict : undefined;
}
class TokenReader {
    #tokens;
    #next;
    constructor(tokens, next) {
        this.#tokens = tokens;
        this.#next = next;
    }
    atEnd() {
        return this.#next === this.#tokens.length;
    }
    sees(mark) {
        return this.#tokens[this.#next]?.mark === mark;
    }
    take(mark) {
        if (!this.sees(mark))
            return false;
        this.#next++;
        return true;
    }
    /** Reads the value that begins here; undefined if none does. */
    value(depth) {
        const token = this.#tokens[this.#next++];
        if (token === undefined || token.value !== undefined)
            return token?.value;
        const closing = CLOSING[token.mark];
        if (closing === undefined || depth === DEPTH_MAX)
            return undefined;
        const values = [];
        while (!this.take(closing)) {
            const value = this.value(depth + 1);
            if (value === undefined || (!this.take(",") && !this.sees(closing)))
                return undefined;
            values.push(value);
        }
        return values;
    }
}
function tokensOf(text) {
    const tokens = [];
    TOKEN.lastIndex = 0;
    for (let end = 0; end < text.length; end = TOKEN.lastIndex) {
        const match = TOKEN.exec(text);
        if (match === null)
            return undefined;
        const [, single, double, digits, word, mark = ""] = match;
        const number = digits === undefined ? undefined : Number(digits);
        const boolean = word === undefined ? undefined : word === "True";
        tokens.push({ mark, value: single ?? double ?? number ?? boolean });
    }
    return tokens;
}
/** numpy's names of the element types. */
const NUMPY_DTYPES = {
    int32: "<i4",
    uint32: "<u4",
    int64: "<i8",
    uint64: "<u8",
    float32: "<f4",
    float64: "<f8",
};
/** Most bytes before the text of the header: magic, version and length. */
export const NPY_PREFIX_BYTES = 12;
const MAGIC = "\x93NUMPY";
const ALIGNMENT = 64;
const DICT_BYTES_MAX = 64 * 1024;
const dtypesByName = new Map(Object.entries(NUMPY_DTYPES).flatMap(([dtype, name]) => (isDtype(dtype) ? [[name, dtype]] : [])));
/** Makes a version 1 `.npy` header for elements in C order, padded so that they begin at a multiple of 64. */
export function encodeNpyHeader(dtype, shape) {
    const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
    const dict = `{'descr': '${NUMPY_DTYPES[dtype]}', 'fortran_order': False, 'shape': ${tuple}, }`;
    const unpadded = MAGIC.length + 4 + dict.length + 1;
    const bytes = Math.ceil(unpadded / ALIGNMENT) * ALIGNMENT;
    const textBytes = bytes - MAGIC.length - 4;
    const version = "\x01\x00";
    const length = String.fromCharCode(textBytes & 0xff, textBytes >> 8);
    const text = `${dict.padEnd(textBytes - 1)}\n`;
    return Buffer.from(MAGIC + version + length + text, "latin1");
}
/**
 * Finds where the text of the header lies, from the first {@link NPY_PREFIX_BYTES} of a `.npy` file.
 * @throws BAD_FILE unless it is version 1, 2 or 3 and at most 64 KiB long.
 */
export function npyTextRange(path, what, prefix) {
    const magic = Buffer.from(prefix.subarray(0, MAGIC.length)).toString("latin1");
    const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
    if (magic !== MAGIC || prefix.byteLength < NPY_PREFIX_BYTES) {
        throw badFile(path, what, "an array in numpy's format", "other bytes");
    }
    const major = view.getUint8(6);
    if (major < 1 || major > 3)
        throw badFile(path, `version of ${what}`, "1, 2 or 3", major);
    const begin = major === 1 ? 10 : 12;
    const textBytes = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
    if (textBytes > DICT_BYTES_MAX) {
        throw badFile(path, `header of ${what}`, `at most ${DICT_BYTES_MAX} bytes`, textBytes);
    }
    return { begin, end: begin + textBytes };
}
/**
 * Reads the text of a `.npy` header: a Python dictionary with `descr`, `fortran_order` and `shape`.
 * @throws BAD_DTYPE for element types no parameter has, big-endian ones too; BAD_FILE for Fortran
 * order and for anything else.
 */
export function parseNpyText(path, what, text) {
    const dict = parsePythonDict(text);
    const descr = dict?.get("descr");
    const order = dict?.get("fortran_order");
    const shape = dict?.get("shape");
    if (dict?.size !== 3 ||
        descr === undefined ||
        typeof order !== "boolean" ||
        !Array.isArray(shape)) {
        const shown = text.trim().slice(0, 120);
        throw badFile(path, `header of ${what}`, "descr, fortran_order and shape, each once", shown);
    }
    // The `descr` of a structured type is a list, which is refused, too.
    const dtype = typeof descr === "string" ? dtypesByName.get(descr) : undefined;
    if (dtype === undefined) {
        const received = JSON.stringify(descr).slice(0, 120);
        throw badFileDtype(path, what, [...dtypesByName.keys()].join(", "), received);
    }
    if (order)
        throw badFile(path, `order of ${what}`, "C order", "Fortran order");
    if (!isShape(shape)) {
        throw badFile(path, `shape of ${what}`, "a shape that can be counted", showShape(shape));
    }
    return { dtype, shape };
}
const SUFFIX = ".npy";
/** Prefix of the comment of a member with an escaped name; the true name follows as JSON. */
const NAME_COMMENT = "PSERVER.name=";
/**
 * Yields the bytes of an npz file, as numpy's `savez` lays it out: a zip archive with a stored member
 * `<name>.npy` per tensor. The format has no place for metadata; it becomes the archive's comment, a JSON
 * object, which numpy does not look at. A name that would unpack to elsewhere is escaped; the member's
 * comment keeps it.
 * @throws what `model.chunks` throws.
 */
export async function* writeNpz(model) {
    const members = model.tensors.map((tensor) => {
        const { name, trueName } = memberName(tensor.name);
        const header = encodeNpyHeader(tensor.dtype, tensor.shape);
        return {
            name: name + SUFFIX,
            ...(trueName === undefined ? {} : { comment: NAME_COMMENT + JSON.stringify(trueName) }),
            bytes: header.byteLength + dataBytes(tensor),
            chunks: async function* () {
                yield header;
                yield* model.chunks(tensor);
            },
        };
    });
    yield* writeZip(members, encodeMetadata(model.metadata));
}
/**
 * Reads the table of contents and the array headers of an npz file, stored or deflated. Checksums are checked
 * as the bytes are read. A comment of another program is not taken for metadata.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export async function readNpz(file) {
    const { entries, comment } = await readZip(file);
    const tensors = [];
    let sumBytes = 0;
    for (const entry of entries) {
        const { tensor, headerBytes } = await readMember(file, entry);
        sumBytes += headerBytes;
        if (sumBytes > DESCRIPTION_BYTES_MAX) {
            const expected = `at most ${DESCRIPTION_BYTES_MAX}`;
            throw badFile(file.path, "bytes of the arrays' headers", expected, sumBytes);
        }
        tensors.push(tensor);
    }
    checkNamesApart(file.path, tensors.map(({ header }) => header));
    return { tensors, metadata: parseMetadata(comment) ?? {} };
}
/** Reads a member's header; returns its tensor and the bytes of the header. */
async function readMember(file, entry) {
    const what = `member ${quoteName(entry.name)}`;
    const member = entry.name.slice(0, -SUFFIX.length);
    if (!entry.name.endsWith(SUFFIX) || member === "") {
        throw badFile(file.path, "members", `names ending in ${SUFFIX}`, what);
    }
    const isNamed = entry.comment.startsWith(NAME_COMMENT);
    const storedName = isNamed ? entry.comment.slice(NAME_COMMENT.length) : undefined;
    const name = trueNameOf(file.path, member, storedName);
    const range = npyTextRange(file.path, what, await unpackBeginning(file, entry, NPY_PREFIX_BYTES));
    const prefix = await unpackBeginning(file, entry, range.end);
    if (prefix.byteLength < range.end) {
        throw badFile(file.path, `header of ${what}`, `${range.end} bytes`, prefix.byteLength);
    }
    const text = Buffer.from(prefix.subarray(range.begin)).toString("latin1");
    const { dtype, shape } = parseNpyText(file.path, what, text);
    const header = { name, dtype, shape };
    const expected = range.end + (elementsOf(shape) ?? 0) * DTYPES[dtype].bytes;
    if (entry.bytes !== expected) {
        throw badFile(file.path, `bytes of ${what}`, expected, entry.bytes);
    }
    return {
        tensor: { header, chunks: () => unpack(file, entry, range.end) },
        headerBytes: range.end,
    };
}
//# sourceMappingURL=npz.js.map