import { asMap, decodeMessage, encodeMessage, integerField, listField, PserverError, parseFallbacks, textField, } from "../../protocol/index.js";
import { checksumField } from "../fold/journal-checksum.js";
/** Limit of the messages of a state, and of the pieces. */
const LIST_MAX = 1_000_000;
/** Encodes a manifest as a message. */
export function encodeManifest(manifest) {
    return encodeMessage({
        ...manifest,
        state: manifest.state.map(({ seq, crc }) => [seq, crc]),
    });
}
/** Decodes the manifest in a message. @throws SNAPSHOT_DAMAGED if it cannot be read. */
export function decodeManifest(bytes) {
    try {
        const { fields } = decodeMessage(bytes);
        return {
            term: integerField(fields, "term", 1),
            host: textField(fields, "host"),
            owner: textField(fields, "owner"),
            generation: integerField(fields, "generation", 1),
            created: textField(fields, "created"),
            fallbacks: parseFallbacks(fields),
            ...(fields["past"] === undefined ? {} : { past: integerField(fields, "past", 1) }),
            ...(fields["rewind"] === undefined ? {} : { rewind: parseRewind(fields["rewind"]) }),
            seq: integerField(fields, "seq"),
            recordCrc: integerField(fields, "recordCrc"),
            checksum: checksumField(fields, "checksum"),
            state: listField(fields, "state", LIST_MAX).map(toPieceRef),
            pieces: listField(fields, "pieces", LIST_MAX).map((seq) => integerField({ seq }, "seq", 1)),
        };
    }
    catch (cause) {
        throw new PserverError("SNAPSHOT_DAMAGED", "a manifest cannot be read", {}, { cause });
    }
}
function parseRewind(value) {
    const fields = asMap(value, "rewind");
    return { id: textField(fields, "id"), generation: integerField(fields, "generation", 1) };
}
/** Parses a reference in a list. @throws BAD_MESSAGE if it is malformed. */
export function toPieceRef(value) {
    const row = Array.isArray(value) ? { seq: value[0], crc: value[1] } : value;
    const fields = asMap(row, "piece");
    return { seq: integerField(fields, "seq", 1), crc: integerField(fields, "crc") };
}
//# sourceMappingURL=manifest.js.map