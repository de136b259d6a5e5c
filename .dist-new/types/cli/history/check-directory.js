import { checkArchive, } from "../../history/archive/check-archive.js";
import { showPosition } from "../../protocol/messages/position.js";
import { formatCount, formatNumber } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
import { EXIT } from "../report-error.js";
/** Reads a whole archive and shows what it has; a damaged file makes the exit code 1. */
export async function checkDirectory(context, output, directory) {
    const findings = await output.progress("reading").during(checkArchive(directory, context.signal));
    const { shards, damage } = findings;
    if (output.json) {
        output.value({ directory, shards, damage: damage.map((error) => error.toWire()) });
    }
    else {
        output.lines(describeArchive(findings, output));
        for (const { message } of damage)
            output.warning(message);
        output.message(`${formatCount(damage.length, "damaged file")} in ${directory}`);
    }
    if (damage.length > 0)
        context.setExitCode(EXIT.failure);
}
/** Writes the contents of an archive as a table. */
function describeArchive({ shards }, format) {
    const columns = [
        { title: "SHARD", align: "right" },
        { title: "RECORDS" },
        { title: "MISSING" },
        { title: "SNAPSHOTS", align: "right" },
        { title: "TAPE" },
    ];
    const rows = shards.map(({ shard, spans, missing, snapshots, tape }) => [
        String(shard),
        showSpans(shard, spans),
        showSpans(shard, missing),
        String(snapshots),
        showTape(tape),
    ]);
    const shrinks = [
        { kind: "wrap", column: "RECORDS", to: 24 },
        { kind: "wrap", column: "MISSING", to: 16 },
        { kind: "wrap", column: "TAPE", to: 12 },
    ];
    return formatTable(columns, rows, format, shrinks);
}
function showTape({ messages, missing }) {
    if (messages === 0)
        return "none";
    const lacks = missing === 0 ? "" : `, lacks ${formatNumber(missing)}`;
    return `${formatCount(messages, "message")}${lacks}`;
}
function showSpans(shard, spans) {
    if (spans.length === 0)
        return "none";
    const show = ({ generation, firstSeq, lastSeq }) => `${showPosition(shard, { generation, seq: firstSeq })} to ${lastSeq}`;
    return spans.map(show).join(", ");
}
//# sourceMappingURL=check-directory.js.map