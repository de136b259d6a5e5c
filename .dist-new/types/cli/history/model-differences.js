import { compareModels, indicesOf, isEqual, joinSparse, } from "../../history/compare-models.js";
import { dataBytes, underKnownNames, } from "../../model-files/index.js";
import { PserverError } from "../../protocol/errors.js";
import { quoteName } from "../../protocol/names.js";
import { formatBytes, formatNumber } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
import { formatElement, formatShape } from "../output/tensor-summary.js";
import { fourDigits, jsonNumber } from "./numbers.js";
/**
 * Compares two models and shows the progress.
 * @throws UNKNOWN_PARAMETER for a name that neither model has; as `compareModels`.
 */
export async function compareSides(output, sides, { names, asSaved }, signal) {
    const whole = sides.map((side) => tensorsOf(side, asSaved));
    const [a = [], b = []] = sides
        .map((side, i) => withOtherNames(side, whole[i] ?? [], whole[1 - i] ?? []))
        .map((all) => all.filter(({ header }) => names?.includes(header.name) ?? true));
    checkKnown(names, [...a, ...b]);
    const totalBytes = a.reduce((sum, { header }) => sum + dataBytes(header), 0);
    const progress = output.progress("comparing", formatBytes);
    const onProgress = (doneBytes) => progress.update(doneBytes, totalBytes);
    const differences = [];
    try {
        for await (const each of compareModels(a, b, { show: formatElement, signal, onProgress })) {
            differences.push(each);
        }
    }
    finally {
        progress.clear();
    }
    return differences;
}
function tensorsOf(side, asSaved) {
    return side.kind === "file" ? side.model.tensors : ofModel(side.model, asSaved);
}
/** Gives tied weights of a file, which have one of their names in it, the name that they have on the other side. */
function withOtherNames(side, own, other) {
    if (side.kind !== "file")
        return own;
    const known = new Set(other.map(({ header }) => header.name));
    return underKnownNames(own, side.model.metadata, known);
}
function ofModel(model, asSaved) {
    const complete = model.parameters.filter(({ isComplete }) => isComplete);
    const tensors = complete.map((parameter) => {
        const { name, dtype, shape } = parameter;
        return { header: { name, dtype, shape }, chunks: () => model.chunks(parameter) };
    });
    return asSaved && tensors.length > 0 ? joinSparse(tensors) : tensors;
}
function checkKnown(names, tensors) {
    const known = new Set(tensors.map(({ header }) => header.name));
    const unknown = names?.find((name) => !known.has(name));
    if (unknown === undefined)
        return;
    const message = `neither model has a parameter ${quoteName(unknown)}`;
    throw new PserverError("UNKNOWN_PARAMETER", message, { parameter: unknown });
}
/** Returns a comparison of one parameter as `--json` prints it. */
export function differenceEntry(found) {
    const { name, kind } = found;
    if (found.kind === "other-form")
        return { name, kind, a: formOf(found.a), b: formOf(found.b) };
    if (found.kind !== "compared")
        return { name, kind, ...formOf(found.header) };
    const { first, largest, mean, normA, normB, ...counts } = found.difference;
    return {
        ...{ name, kind, equal: isEqual(found), ...formOf(found.header), ...counts },
        largest: jsonNumber(largest),
        mean: jsonNumber(mean),
        normA: jsonNumber(normA),
        normB: jsonNumber(normB),
        ratio: jsonNumber(normB / normA),
        first: first === undefined
            ? null
            : { index: indicesOf(first.element, found.header.shape), ...first },
    };
}
/** Writes comparisons as a table. */
export function describeDifferences(differences, format) {
    const columns = [
        { title: "PARAMETER" },
        { title: "CHANGED", align: "right" },
        { title: "LARGEST", align: "right" },
        { title: "MEAN", align: "right" },
        { title: "NORM A", align: "right" },
        { title: "NORM B", align: "right" },
        { title: "B/A", align: "right" },
        { title: "FIRST" },
    ];
    const rows = differences.map((each) => [each.name, ...cellsOf(each)]);
    const shrinks = [
        { kind: "cut", column: "PARAMETER", to: 20 },
        { kind: "drop", column: "NORM A" },
        { kind: "cut", column: "FIRST", to: 24 },
        { kind: "drop", column: "NORM B" },
        { kind: "cut", column: "PARAMETER", to: 12 },
        { kind: "drop", column: "FIRST" },
    ];
    return formatTable(columns, rows, format, shrinks);
}
function cellsOf(found) {
    if (found.kind === "other-form") {
        return ["other form", "", "", "", "", "", `${showForm(found.a)} and ${showForm(found.b)}`];
    }
    if (found.kind !== "compared")
        return [found.kind === "only-a" ? "only in A" : "only in B"];
    const { difference, header } = found;
    const { largest, mean, normA, normB } = difference;
    return [
        changedCell(difference),
        ...[largest, mean, normA, normB, normB / normA].map(fourDigits),
        firstCell(difference, header),
    ];
}
function changedCell({ differing, elements }) {
    if (differing === 0)
        return "equal";
    return differing === elements ? "all" : formatNumber(differing);
}
function firstCell({ first }, { shape }) {
    if (first === undefined)
        return "";
    return `[${indicesOf(first.element, shape).join(",")}] ${first.a} → ${first.b}`;
}
function formOf({ dtype, shape }) {
    return { dtype, shape };
}
function showForm({ dtype, shape }) {
    return `${dtype} ${formatShape(shape)}`;
}
//# sourceMappingURL=model-differences.js.map