import { visible } from "../../protocol/errors.js";
import { cutMiddle, textWidth, wrapText } from "./wrap.js";
const GAP = "  ";
/**
 * Writes rows under their titles, in columns as wide as their widest cell or as the terminal allows; no lines
 * without rows. Cells may hold names that others chose, so they are made {@link visible}. `shrinks` are applied
 * in order, until the table fits: begin with the least important column. A table that is still too wide after
 * the last one exceeds the terminal.
 */
export function formatTable(columns, rows, { paint, width }, shrinks = []) {
    if (rows.length === 0)
        return [];
    let sized = columns.map((column, i) => sizedColumn(column, rows, i));
    for (const shrink of shrinks) {
        const excess = totalWidth(sized) - width;
        if (excess <= 0)
            break;
        sized = applyShrink(sized, shrink, excess);
    }
    const titles = lineOf(sized, ({ title, width: own }) => cutMiddle(title, own));
    const lines = rows.flatMap((_, row) => rowLines(sized, row));
    return [paint("strong", titles), ...lines];
}
function sizedColumn(column, rows, i) {
    const cells = rows.map((row) => visible(row[i] ?? ""));
    const width = Math.max(textWidth(column.title), ...cells.map(textWidth));
    return { ...column, cells, width, isWrapped: false };
}
function totalWidth(sized) {
    return sized.reduce((sum, { width }) => sum + width, GAP.length * (sized.length - 1));
}
/** Applies one shrink; `excess` is by how many columns of the terminal the table is too wide. */
function applyShrink(sized, shrink, excess) {
    if (shrink.kind === "drop")
        return sized.filter(({ title }) => title !== shrink.column);
    const { kind, to } = shrink;
    return sized.map((column) => {
        if (column.title !== shrink.column || column.width <= to)
            return column;
        return { ...column, isWrapped: kind === "wrap", width: Math.max(to, column.width - excess) };
    });
}
/** Writes a row, which takes several lines where a cell is wrapped. */
function rowLines(sized, row) {
    const parts = sized.map(({ cells, width, isWrapped }) => {
        const lines = isWrapped ? wrapText(cells[row] ?? "", width) : [cells[row] ?? ""];
        return lines.map((line) => cutMiddle(line, width));
    });
    const height = Math.max(...parts.map((lines) => lines.length));
    return Array.from({ length: height }, (_, n) => lineOf(sized, (_column, i) => parts[i]?.[n] ?? ""));
}
function lineOf(sized, cell) {
    return sized
        .map((column, i) => pad(cell(column, i), column))
        .join(GAP)
        .trimEnd();
}
function pad(text, { width, align = "left" }) {
    const blanks = " ".repeat(Math.max(0, width - textWidth(text)));
    return align === "left" ? text + blanks : blanks + text;
}
//# sourceMappingURL=table.js.map