import { DTYPES, ENCODINGS, isDtype, isEncoding } from "./dtypes.js";
import { PserverError } from "./errors.js";
/** Returns the entries that are not undefined. */
export function defined(entries) {
    return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}
/** Checked reading of a message's fields: external values are validated here and nowhere later. */
/**
 * The whole number under `key`.
 * @throws BAD_MESSAGE unless it is a safe integer in `min..max`.
 */
export function integerField(fields, key, min = 0, max = Number.MAX_SAFE_INTEGER) {
    const value = fields[key];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) {
        return value;
    }
    throw badField(key, `a whole number from ${min} to ${max}`, value);
}
/** Reads the number under `key`, NaN and infinities included; @throws BAD_MESSAGE if it is not a number. */
export function numberField(fields, key) {
    const value = fields[key];
    if (typeof value === "number")
        return value;
    throw badField(key, "a number", value);
}
/** Reads the text under `key`; @throws BAD_MESSAGE if it is not text or longer than `lengthMax`. */
export function textField(fields, key, lengthMax = 1024) {
    const value = fields[key];
    if (typeof value === "string" && value.length <= lengthMax)
        return value;
    throw badField(key, `text of at most ${lengthMax} characters`, value);
}
/** Reads the word under `key`; @throws BAD_MESSAGE if it is not one of `words`. */
export function wordField(fields, key, words) {
    const value = fields[key];
    const word = words.find((known) => known === value);
    if (word !== undefined)
        return word;
    throw badField(key, words.join(" or "), value);
}
/** Reads the boolean under `key`, false if absent; @throws BAD_MESSAGE for a value of another type. */
export function flagField(fields, key) {
    const value = fields[key];
    if (value === undefined || typeof value === "boolean")
        return value ?? false;
    throw badField(key, "true or false", value);
}
/** Reads the element type under `key`; @throws BAD_DTYPE if it names none. */
export function dtypeField(fields, key = "dtype") {
    const value = fields[key];
    if (isDtype(value))
        return value;
    const expected = Object.keys(DTYPES);
    throw new PserverError("BAD_DTYPE", `${key}: expected ${expected.join(", ")}; received ${describe(value)}`, { expected, received: describe(value) });
}
/** Reads the encoding under `encoding`, undefined if absent; @throws BAD_DTYPE if it names none. */
export function encodingField(fields) {
    const value = fields["encoding"];
    if (value === undefined || isEncoding(value))
        return value;
    const expected = Object.keys(ENCODINGS);
    throw new PserverError("BAD_DTYPE", `encoding: expected ${expected.join(", ")} or none; received ${describe(value)}`, { expected, received: describe(value) });
}
/** Reads the list under `key`; @throws BAD_MESSAGE if it is not a list or longer than `lengthMax`. */
export function listField(fields, key, lengthMax) {
    const value = fields[key];
    if (Array.isArray(value) && value.length <= lengthMax)
        return value;
    throw badField(key, `a list of at most ${lengthMax}`, value);
}
/** Reads the map under `key`; @throws BAD_MESSAGE if it is not a map. */
export function mapField(fields, key) {
    return asMap(fields[key], key);
}
/** Returns `value` as a map; @throws BAD_MESSAGE if it is not a map. */
export function asMap(value, what) {
    if (isMap(value))
        return value;
    throw badField(what, "a map", value);
}
function isMap(value) {
    return (typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Uint8Array));
}
function badField(key, expected, value) {
    const received = describe(value);
    return new PserverError("BAD_MESSAGE", `${key}: expected ${expected}; received ${received}`, {
        field: key,
        expected,
        received,
    });
}
function describe(value) {
    if (value === undefined)
        return "nothing";
    if (typeof value === "string")
        return JSON.stringify(value.slice(0, 60));
    if (typeof value === "number" || typeof value === "boolean" || value === null) {
        return String(value);
    }
    if (Array.isArray(value))
        return `a list of ${value.length}`;
    return value instanceof Uint8Array ? `${value.length} bytes` : `a ${typeof value}`;
}
//# sourceMappingURL=fields.js.map