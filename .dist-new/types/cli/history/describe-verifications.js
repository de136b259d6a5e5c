import { isSound, } from "../../history/verify.js";
import { showPosition } from "../../protocol/messages/position.js";
import { formatNumber } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
/** Whether no finding about a shard is of damage or a difference. */
export function isWhole({ verification, served, tape }) {
    return isSound(verification) && served?.kind !== "different" && tape.problems.length === 0;
}
/** Whether anything was compared: a recorded file may hold one snapshot of each shard, from which it begins. */
export function isCompared({ verification, served }) {
    return served?.kind === "equal" || verification.places.some(({ kind }) => kind === "equal");
}
/** Returns the findings about a shard as `--json` prints them. */
export function verificationEntry({ verification, served, tape }) {
    return { ...verification, hosts: served ?? null, tape };
}
/** Writes the findings as a table. */
export function describeVerifications(found, format) {
    const columns = [
        { title: "SHARD", align: "right" },
        { title: "FROM" },
        { title: "RECORDS", align: "right" },
        { title: "SNAPSHOTS" },
        { title: "HOST" },
    ];
    const rows = found.map(({ verification, served }) => {
        const { shard, records, places } = verification;
        const [first] = places;
        return [
            String(shard),
            first === undefined ? "nothing is kept" : showPosition(shard, first),
            formatNumber(records),
            snapshotsCell(places),
            served === undefined ? "not asked" : served.kind,
        ];
    });
    return formatTable(columns, rows, format, [{ kind: "drop", column: "FROM" }]);
}
function snapshotsCell(places) {
    const kinds = ["equal", "different", "damaged", "unreadable", "given-up", "not-kept"];
    const counts = kinds.map((kind) => {
        const count = places.filter((place) => place.kind === kind).length;
        return count === 0 ? "" : `${count} ${kind}`;
    });
    return counts.filter((text) => text !== "").join(", ") || "none to compare";
}
/** Lists differences and damage, a line each. */
export function describeProblems(found) {
    return found.flatMap(({ verification, served, tape }) => {
        const { shard, places } = verification;
        const problems = places.flatMap((place) => describePlace(shard, place));
        if (served?.kind === "different") {
            const at = showPosition(shard, served.position);
            problems.push(`shard ${shard}: its host holds other bytes at ${at}: ${served.what.join(", ")}`);
        }
        else if (served?.kind === "unknown") {
            const { code, message } = served.error;
            problems.push(`shard ${shard}: its host was not compared: ${code}: ${message}`);
        }
        for (const { code, message } of tape.problems)
            problems.push(`${code}: ${message}`);
        return problems;
    });
}
function describePlace(shard, place) {
    const at = showPosition(shard, place);
    if (place.kind === "different")
        return [`the snapshot at ${at} differs from the fold`];
    if (place.kind === "damaged")
        return [`the snapshot at ${at} is damaged: ${place.error.message}`];
    if (place.kind === "unreadable")
        return [`the journal after ${at}: ${place.error.message}`];
    if (place.kind === "given-up") {
        return [`the journal after ${at} was given up with its generation: ${place.error.message}`];
    }
    if (place.kind === "not-kept")
        return [`shard ${shard}, after ${at}: ${place.error.message}`];
    return [];
}
//# sourceMappingURL=describe-verifications.js.map