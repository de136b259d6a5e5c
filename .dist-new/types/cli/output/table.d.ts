import type { TextFormat } from "./colors.ts";
/** A column of a table; numbers are best aligned right. */
export interface Column {
    readonly title: string;
    readonly align?: "left" | "right";
}
/**
 * How a column gives up width in a table that is too wide: its cells lose their middle (`cut`) or continue in
 * further lines (`wrap`), as far as needed but not below a width of `to`; or the whole column goes (`drop`).
 * `column` is its title.
 */
export type Shrink = {
    readonly kind: "cut" | "wrap";
    readonly column: string;
    readonly to: number;
} | {
    readonly kind: "drop";
    readonly column: string;
};
/**
 * Writes rows under their titles, in columns as wide as their widest cell or as the terminal allows; no lines
 * without rows. Cells may hold names that others chose, so they are made {@link visible}. `shrinks` are applied
 * in order, until the table fits: begin with the least important column. A table that is still too wide after
 * the last one exceeds the terminal.
 */
export declare function formatTable(columns: readonly Column[], rows: readonly (readonly string[])[], { paint, width }: TextFormat, shrinks?: readonly Shrink[]): string[];
//# sourceMappingURL=table.d.ts.map