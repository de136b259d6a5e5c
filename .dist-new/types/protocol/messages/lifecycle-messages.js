import { toSharedConfig, toSynchronization, } from "../config/index.js";
import { PserverError } from "../errors.js";
import { asMap, dtypeField, flagField, integerField, listField, mapField, textField, wordField, } from "../fields.js";
import { layoutFromWire } from "../layout.js";
import { HEADER_BYTES_MAX, PARAMETERS_PER_REQUEST_MAX, SHARDS_MAX, TRAINERS_PER_MESSAGE_MAX, } from "../limits.js";
import { escapeId, escapeName } from "../names.js";
import { checkShape } from "../tensor.js";
import { laterPosition, parsePosition } from "./position.js";
/**
 * Most bytes of a parameter in a request or a reply. Name, configuration with a table of learning rates, and
 * shape take less than 1,600.
 */
const PARAMETER_BYTES_MAX = 2048;
/**
 * Returns how many parameters one request can declare or ask for, so that neither the request nor its reply
 * exceeds `payloadBytesMax`, the largest message that the broker takes.
 */
export function parametersPerRequest(payloadBytesMax) {
    const fitting = Math.floor((payloadBytesMax - HEADER_BYTES_MAX) / PARAMETER_BYTES_MAX);
    return Math.max(1, Math.min(PARAMETERS_PER_REQUEST_MAX, fitting));
}
/** @throws BAD_MESSAGE if the fields are not a valid join. */
export function parseJoinRequest(fields) {
    return { token: textField(fields, "token", 64) };
}
/** @throws BAD_MESSAGE if the entries name no session. */
export function parseSessionRequest(fields) {
    return { session: integerField(fields, "session", 1) };
}
/** @throws BAD_MESSAGE if the fields are not a valid `enter` or `exit`. */
export function parseMembershipRequest(fields) {
    const exits = fields["exits"] === undefined ? 0 : integerField(fields, "exits");
    return { ...parseSessionRequest(fields), exits };
}
/** @throws EMPTY for no parameter; BAD_NAME, BAD_DTYPE, BAD_SHAPE or BAD_CONFIG for a wrong one. */
export function parseDeclareRequest(fields) {
    const parameters = listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX);
    if (parameters.length === 0) {
        throw new PserverError("EMPTY", "declare: expected at least one parameter; received none");
    }
    return {
        ...parseSessionRequest(fields),
        epoch: integerField(fields, "epoch", 1),
        parameters: parameters.map(parseDeclaration),
    };
}
/** @throws as {@link parseDeclareRequest} does. */
export function parseCreateRequest(fields) {
    return { ...parseSessionRequest(fields), parameter: parseDeclaration(fields["parameter"]) };
}
/** @throws BAD_MESSAGE if the fields are not a valid finish. */
export function parseFinishRequest(fields) {
    const at = listField(fields, "at", SHARDS_MAX).map((value) => {
        const entry = asMap(value, "at");
        return { shard: integerField(entry, "shard", 0, SHARDS_MAX - 1), ...parsePosition(entry) };
    });
    return { ...parseSessionRequest(fields), ...parseTarget(fields), at };
}
/** Reads the epoch of a `finish` or `abort` and, if it concerns one parameter, the name. */
export function parseTarget(fields) {
    const epoch = integerField(fields, "epoch", 1);
    if (fields["parameter"] === undefined)
        return { epoch };
    return { epoch, parameter: checkedName(fields, "parameter") };
}
/** @throws BAD_MESSAGE if the fields are not a valid status request. */
export function parseStatusRequest(fields) {
    if (fields["names"] !== undefined) {
        const names = listField(fields, "names", PARAMETERS_PER_REQUEST_MAX);
        return { names: names.map((name) => checkedName({ name }, "name")) };
    }
    if (fields["limit"] === undefined)
        return {};
    const limit = integerField(fields, "limit", 1, PARAMETERS_PER_REQUEST_MAX);
    return fields["after"] === undefined ? { limit } : { limit, after: textField(fields, "after") };
}
/** @throws BAD_MESSAGE if the fields are not a valid reply to `join`. */
export function parseJoinReply(fields) {
    return {
        session: integerField(fields, "session", 1),
        shards: integerField(fields, "shards", 1, SHARDS_MAX),
        leaseMs: integerField(fields, "leaseMs", 1),
        journal: journalField(fields),
        synchronization: toSynchronization(fields["synchronization"]),
        maxPayloadBytes: integerField(fields, "maxPayloadBytes", 1),
    };
}
/** @throws BAD_MESSAGE if the fields are not a valid reply to `enter`. */
export function parseEnterReply(fields) {
    return { revision: integerField(fields, "revision", 1) };
}
/** @throws BAD_MESSAGE if the fields are not a valid reply to `begin` or `create`. */
export function parseBeginReply(fields) {
    return {
        selected: flagField(fields, "selected"),
        state: stateField(fields),
        epoch: integerField(fields, "epoch"),
        by: textField(fields, "by"),
    };
}
/** Reads the parameters in a reply to `declare`, `create` or `status`; null where there is none. */
export function parseParameters(fields) {
    return listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map((value) => value === null || value === undefined ? null : parseParameterInfo(value));
}
/** @throws BAD_MESSAGE if the fields are not a valid reply to `status`. */
export function parseStatusReply(fields) {
    return {
        state: stateField(fields),
        epoch: integerField(fields, "epoch"),
        by: textField(fields, "by"),
        shards: integerField(fields, "shards", 1, SHARDS_MAX),
        parameters: parseParameters(fields),
        more: flagField(fields, "more"),
        at: listField(fields, "at", SHARDS_MAX).map((entry) => parsePosition(asMap(entry, "at"))),
    };
}
/** Reads a parameter in a reply; @throws BAD_MESSAGE and the like if it is malformed. */
export function parseParameterInfo(value) {
    const fields = asMap(value, "parameter");
    return {
        ...parseDeclaration(fields),
        epoch: integerField(fields, "epoch", 1),
        ready: flagField(fields, "ready"),
        layout: layoutFromWire(fields["layout"]),
    };
}
function parseDeclaration(value) {
    const fields = asMap(value, "parameter");
    return {
        name: checkedName(fields, "name"),
        dtype: dtypeField(fields),
        shape: checkShape(listField(fields, "shape", 64)),
        config: configField(fields),
    };
}
/** Reads a configuration in any of the forms that callers may give. */
function configField(fields) {
    const value = fields["config"];
    const isBytes = typeof value === "string" || value instanceof Uint8Array;
    return toSharedConfig(isBytes ? value : mapField(fields, "config"));
}
/** Reads the parameter's name under `key`; @throws BAD_NAME or BAD_MESSAGE if it is not valid. */
export function checkedName(fields, key) {
    const name = fields[key];
    if (typeof name !== "string")
        return textField(fields, key);
    escapeName(name);
    return name;
}
function stateField(fields) {
    return wordField(fields, "state", ["uninitialized", "initializing", "ready"]);
}
function journalField(fields) {
    return wordField(fields, "journal", ["file", "memory"]);
}
/**
 * Reads a list of trainers with their sessions.
 * @throws BAD_MESSAGE, BAD_NAME and the like, also for more than fit into one.
 */
export function parseTrainerSessions(list) {
    const rows = listField({ trainers: list }, "trainers", TRAINERS_PER_MESSAGE_MAX);
    return rows.map((value) => {
        const row = { ...listField({ row: value }, "row", 2) };
        const trainer = textField(row, "0");
        escapeId(trainer);
        return [trainer, integerField(row, "1", 1)];
    });
}
/** Returns the entries of a request for the trainers after an id; "" asks from the first one on. */
export function trainersRequest(after) {
    return { after };
}
/** Reads the id after which an owner is asked for trainers; @throws BAD_MESSAGE. */
export function parseTrainersRequest(fields) {
    return textField(fields, "after");
}
/** Returns the entries of the reply. */
export function trainersReply(remembered) {
    return { ...remembered };
}
/** Reads the trainers in a reply; @throws as {@link parseTrainerSessions}. */
export function parseTrainersReply(fields) {
    const toldUpTo = integerField(fields, "toldUpTo");
    return { trainers: parseTrainerSessions(fields["trainers"]), toldUpTo };
}
/**
 * Asks page after page for every parameter of a job, ready or not, in the order of names, and for the job's
 * state. Positions are the latest of all pages, because each page covers only its own parameters; everything
 * else is from the last page.
 * @throws what `ask` throws.
 */
export async function readStatusPages(ask) {
    const parameters = [];
    let at = [];
    for (;;) {
        const after = parameters.at(-1)?.name;
        const limit = PARAMETERS_PER_REQUEST_MAX;
        const status = await ask(after === undefined ? { limit } : { limit, after });
        const page = status.parameters.filter((info) => info !== null);
        parameters.push(...page);
        const earlier = at;
        if (status.at.length > 0)
            at = status.at.map((own, i) => laterPosition(earlier[i], own));
        if (!status.more || page.length === 0)
            return { status: { ...status, at }, parameters };
    }
}
//# sourceMappingURL=lifecycle-messages.js.map