import { encodeMessage, packValue, unpackValue } from "../codec.js";
import { toSynchronization } from "../config/index.js";
import { PserverError } from "../errors.js";
import { asMap, flagField, integerField, listField, mapField, textField } from "../fields.js";
import { LIVE_SESSIONS_MAX, MEMBERS_MAX, PARAMETERS_PER_REQUEST_MAX } from "../limits.js";
import { escapeId, unescapeId } from "../names.js";
import { parseParameterInfo, parseTrainerSessions, } from "./lifecycle-messages.js";
/** Writes a host's record as a message. Lists go into its bytes, because a header has no space for them. */
export function encodeHostRecord(record) {
    switch (record.verb) {
        case "members": {
            const { verb: _verb, trainers, ...entries } = record;
            const ids = trainers.map(escapeId).join("\n");
            return encodeMessage(entries, new TextEncoder().encode(ids));
        }
        case "declare": {
            const { trainer, parameters } = record;
            return encodeMessage({ trainer }, packValue(parameters));
        }
        case "sessions":
            return encodeMessage({ upTo: record.upTo }, packValue(record.live));
        case "forget":
            return encodeMessage({}, packValue(record.trainers));
        default: {
            const { verb: _verb, ...entries } = record;
            return encodeMessage({ ...entries });
        }
    }
}
/**
 * Reads a host's record of a verb.
 * @throws BAD_MESSAGE and the like naming what is wrong.
 */
export function parseHostRecord(verb, message) {
    const { fields, data } = message;
    switch (verb) {
        case "rules":
            return parseRules(fields);
        case "members":
            return {
                verb,
                revision: integerField(fields, "revision", 1),
                started: flagField(fields, "started"),
                trainers: parseMembers(data),
            };
        case "declare": {
            const trainer = textField(fields, "trainer");
            escapeId(trainer);
            const parameters = unpackList("parameters", data, PARAMETERS_PER_REQUEST_MAX);
            return { verb, trainer, parameters: parameters.map(parseGranted) };
        }
        case "drop":
            return {
                verb,
                parameter: textField(fields, "parameter"),
                epoch: integerField(fields, "epoch"),
            };
        case "floor":
            return { verb, session: integerField(fields, "session") };
        case "sessions": {
            const upTo = integerField(fields, "upTo", 1);
            const live = unpackList("live", data, LIVE_SESSIONS_MAX);
            return { verb, upTo, live: live.map((live) => integerField({ live }, "live", 1, upTo)) };
        }
        case "forget":
            return { verb, trainers: parseTrainerSessions(unpackValue(data)) };
    }
}
/** Reads a parameter in a `declare` record or a saved state; @throws BAD_MESSAGE and the like. */
export function parseGranted(value) {
    const { ready: _ready, ...granted } = parseParameterInfo(asMap(value, "parameter"));
    return granted;
}
function parseRules(fields) {
    const rules = integerField(fields, "rules", 1);
    if (fields["synchronization"] === undefined)
        return { verb: "rules", rules };
    const synchronization = toSynchronization(mapField(fields, "synchronization"));
    return { verb: "rules", rules, synchronization };
}
function parseMembers(data) {
    if (data.length === 0)
        return [];
    const ids = new TextDecoder().decode(data).split("\n");
    if (ids.length <= MEMBERS_MAX)
        return ids.map(unescapeId);
    throw new PserverError("BAD_LENGTH", `tensor bytes: expected at most ${MEMBERS_MAX} members; received ${ids.length}`, { expected: `at most ${MEMBERS_MAX} members`, received: ids.length });
}
function unpackList(key, data, lengthMax) {
    return listField({ [key]: unpackValue(data) }, key, lengthMax);
}
//# sourceMappingURL=host-records.js.map