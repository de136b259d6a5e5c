/** Writes a number in a few characters: `0.0312`, `12.5`, `1.3e-9`; `-` for none. */
export declare function compactNumber(value: number | undefined): string;
/** Writes a number with four significant digits. */
export declare function fourDigits(value: number): string;
/** Returns a number for JSON, which has no NaN and no infinities: those become text. */
export declare function jsonNumber(value: number): number | string;
//# sourceMappingURL=numbers.d.ts.map