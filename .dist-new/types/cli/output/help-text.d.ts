/** Columns of help where the terminal does not say less. */
export declare const HELP_COLUMNS = 80;
/**
 * Breaks the lines of a section of help anew, so that they fill the width: sentences that follow each other become one
 * paragraph, a line with two or more blanks inside begins an item of a list, and what is indented more belongs to the
 * item before it.
 */
export declare function fillSection(lines: readonly string[], width: number): string[];
//# sourceMappingURL=help-text.d.ts.map