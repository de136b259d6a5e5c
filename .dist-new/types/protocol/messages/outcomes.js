import { encodeMessage } from "../codec.js";
import { errorFromWire, isErrorCode, PserverError } from "../errors.js";
import { asMap, integerField, listField, textField } from "../fields.js";
import { parseFallbacks, parsePosition } from "./position.js";
/** Most records of one answer or outcome request: the window of a session. */
const OUTCOMES_MAX = 1024;
/** Longest text of a rejection in an answer. */
const TEXT_LENGTH_MAX = 4096;
/**
 * Writes answers as a message. If it would have more than `bytesMax` bytes, the texts of rejections are cut:
 * a client decides by the codes.
 */
export function encodeAnswers(answers, bytesMax = Number.POSITIVE_INFINITY) {
    const { outcomes, ...header } = answers;
    let textMax = TEXT_LENGTH_MAX;
    for (;;) {
        const rows = outcomes.map((outcome) => outcomeRow(withShortText(outcome, textMax)));
        const bytes = encodeMessage({ ...header, outcomes: rows });
        if (bytes.length <= bytesMax || textMax === 0)
            return bytes;
        textMax = Math.floor(textMax / 2);
    }
}
function withShortText(outcome, lengthMax) {
    const { message } = outcome;
    if (message === undefined || message.length <= lengthMax)
        return outcome;
    // A cut within a surrogate pair would leave half of it, which no message can carry.
    return { ...outcome, message: message.slice(0, lengthMax).toWellFormed() };
}
/** @throws BAD_MESSAGE if the message does not hold valid answers, or the error that the message carries. */
export function parseAnswers(message) {
    throwIfError(message.fields);
    const { fields } = message;
    return {
        shard: integerField(fields, "shard"),
        generation: integerField(fields, "generation", 1),
        session: integerField(fields, "session", 1),
        outcomes: listField(fields, "outcomes", OUTCOMES_MAX).map(parseOutcomeRow),
        ...(fields["fallbacks"] === undefined ? {} : { fallbacks: parseFallbacks(fields) }),
    };
}
/** Writes an outcome request as a message. */
export function encodeOutcomeRequest(request) {
    return encodeMessage({ ...request });
}
/** @throws BAD_MESSAGE if the message is not a valid outcome request. */
export function parseOutcomeRequest(fields) {
    const numbers = listField(fields, "numbers", OUTCOMES_MAX);
    return {
        session: integerField(fields, "session", 1),
        numbers: numbers.map((value) => integerField({ n: value }, "n", 1)),
        ...parsePosition(fields),
    };
}
/** Writes an error as a reply. */
export function encodeError(error) {
    return encodeMessage({ error: error.toWire() });
}
/** Throws the error that a reply carries, if it carries one. */
export function throwIfError(fields) {
    const error = fields["error"];
    if (error === undefined)
        return;
    const wire = asMap(error, "error");
    const { details } = wire;
    throw errorFromWire({
        code: textField(wire, "code"),
        message: textField(wire, "message", Number.POSITIVE_INFINITY),
        details: details === undefined || details === null ? {} : asMap(details, "error details"),
    });
}
/**
 * Returns an outcome as messages and snapshots hold it: `[n, seq, version]`, and of a rejection also code and
 * text.
 */
export function outcomeRow(outcome) {
    const { n, seq, version, code, message } = outcome;
    return code === undefined ? [n, seq, version] : [n, seq, version, code, message ?? ""];
}
/** Reads the outcome in a row; @throws BAD_MESSAGE if it is not valid. */
export function parseOutcomeRow(row) {
    if (!Array.isArray(row))
        throw new PserverError("BAD_MESSAGE", "outcome: expected a list");
    const [n, seq, version, code, message] = row;
    const entry = { n, seq, version, code, message };
    const outcome = {
        n: integerField(entry, "n", 1),
        seq: integerField(entry, "seq"),
        version: integerField(entry, "version"),
    };
    if (code === undefined)
        return outcome;
    const text = textField(entry, "code");
    return {
        ...outcome,
        code: isErrorCode(text) ? text : "INTERNAL",
        message: textField(entry, "message", TEXT_LENGTH_MAX),
    };
}
//# sourceMappingURL=outcomes.js.map