import { mismatch } from "../protocol/errors.js";
/** Makes a BAD_FILE for `what` in a file that is not as expected. */
export function badFile(path, what, expected, received, cause) {
    const options = cause === undefined ? undefined : { cause };
    return mismatch("BAD_FILE", `${path}: ${what}`, expected, received, { path, what }, options);
}
/** Makes a BAD_DTYPE for an element type of a file that no parameter has. */
export function badFileDtype(path, what, expected, received) {
    return mismatch("BAD_DTYPE", `${path}: dtype of ${what}`, expected, received, { path, what });
}
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/**
 * Decodes the text of a file.
 * @throws BAD_FILE naming `what` if they are not UTF-8.
 */
export function decodeFileText(path, what, bytes) {
    try {
        return decoder.decode(bytes);
    }
    catch (cause) {
        throw badFile(path, `text of ${what}`, "UTF-8", "other bytes", cause);
    }
}
/**
 * Parses the JSON text of a file.
 * @throws BAD_FILE naming `what` if it is not JSON.
 */
export function parseFileJson(path, what, text) {
    try {
        return JSON.parse(text);
    }
    catch (cause) {
        throw badFile(path, what, "JSON", JSON.stringify(text.slice(0, 60)), cause);
    }
}
const CODES = {
    quote: 0x22,
    backslash: 0x5c,
    colon: 0x3a,
    comma: 0x2c,
    list: 0x5b,
    listEnd: 0x5d,
    object: 0x7b,
    objectEnd: 0x7d,
};
/**
 * Reads JSON of a file whose size was checked before. For nested brackets a parser may need a
 * hundred times the memory of the text; within the bounds it needs a small multiple.
 * @throws BAD_FILE naming `what` if it is not UTF-8, not JSON, or holds more than `bounds` allow.
 */
export function parseBoundedJson(path, what, bytes, bounds) {
    const colons = checkBounds(path, what, bytes, bounds);
    const text = decodeFileText(path, what, bytes);
    return { text, value: parseFileJson(path, what, text), colons };
}
/** Checks the bounds; returns the number of colons outside of strings. */
function checkBounds(path, what, bytes, bounds) {
    const refuse = (name, limit) => {
        throw badFile(path, `${name} in the ${what}`, `at most ${limit}`, "more");
    };
    let [depth, containers, commas, colons] = [0, 0, 0, 0];
    let isQuoted = false;
    for (let i = 0; i < bytes.length; i++) {
        const byte = bytes[i];
        if (byte === CODES.quote)
            isQuoted = !isQuoted;
        else if (isQuoted) {
            if (byte === CODES.backslash)
                i++;
        }
        else if (byte === CODES.colon)
            colons++;
        else if (byte === CODES.comma) {
            if (++commas > bounds.commas)
                refuse("values", bounds.commas);
        }
        else if (byte === CODES.list || byte === CODES.object) {
            if (++depth > bounds.depth)
                refuse("lists and objects inside one another", bounds.depth);
            if (++containers > bounds.containers)
                refuse("lists and objects", bounds.containers);
        }
        else if (byte === CODES.listEnd || byte === CODES.objectEnd)
            depth--;
    }
    return colons;
}
/** Returns whether a parsed JSON value is an object. */
export function isJsonObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
/** Returns a parsed JSON value if it is an object, else an object without fields. */
export function jsonObjectOf(value) {
    return isJsonObject(value) ? value : {};
}
//# sourceMappingURL=file-text.js.map