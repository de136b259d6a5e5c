import { asMap, flagField, integerField, listField, textField } from "../fields.js";
import { MEMBERS_MAX, PARAMETERS_PER_REQUEST_MAX } from "../limits.js";
import { parseGranted, parseInitializedJob, } from "./host-records.js";
/** Reads a declared parameter in a reply or a saved state; @throws BAD_MESSAGE and the like. */
export function parseDeclared(value) {
    const fields = asMap(value, "declared");
    const declared = { ...parseGranted(fields), trainer: textField(fields, "trainer") };
    return fields["initialized"] === undefined ? declared : { ...declared, initialized: true };
}
/** Returns the entries of a request for what a shard knows, with the parameters after a name; "" for the first. */
export function knowledgeRequest(after) {
    return { after };
}
/** Reads the name after which an owner is asked for parameters; @throws BAD_MESSAGE. */
export function parseKnowledgeRequest(fields) {
    return textField(fields, "after");
}
/** Returns the entries of the reply. */
export function knowledgeReply(page) {
    return { ...page };
}
/** Reads a reply; @throws BAD_MESSAGE and the like. */
export function parseKnowledgeReply(fields) {
    const members = asMap(fields["members"], "members");
    return {
        ...(fields["job"] === undefined
            ? {}
            : { job: parseInitializedJob(asMap(fields["job"], "job")) }),
        sweptUpTo: integerField(fields, "sweptUpTo"),
        members: {
            revision: integerField(members, "revision"),
            started: flagField(members, "started"),
            trainers: listField(members, "trainers", MEMBERS_MAX).map((id) => textField({ id }, "id")),
        },
        parameters: listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map(parseDeclared),
        more: flagField(fields, "more"),
    };
}
//# sourceMappingURL=shard-knowledge.js.map