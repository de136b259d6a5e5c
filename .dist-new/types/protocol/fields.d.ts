import type { Fields } from "./codec.ts";
import { type Dtype, type Encoding } from "./dtypes.ts";
/** Returns the entries that are not undefined. */
export declare function defined<Entries extends object>(entries: Entries): {
    [Key in keyof Entries]?: Exclude<Entries[Key], undefined>;
};
/** Checked reading of a message's fields: external values are validated here and nowhere later. */
/**
 * The whole number under `key`.
 * @throws BAD_MESSAGE unless it is a safe integer in `min..max`.
 */
export declare function integerField(fields: Fields, key: string, min?: number, max?: number): number;
/** Reads the number under `key`, NaN and infinities included; @throws BAD_MESSAGE if it is not a number. */
export declare function numberField(fields: Fields, key: string): number;
/** Reads the text under `key`; @throws BAD_MESSAGE if it is not text or longer than `lengthMax`. */
export declare function textField(fields: Fields, key: string, lengthMax?: number): string;
/** Reads the word under `key`; @throws BAD_MESSAGE if it is not one of `words`. */
export declare function wordField<Word extends string>(fields: Fields, key: string, words: readonly Word[]): Word;
/** Reads the boolean under `key`, false if absent; @throws BAD_MESSAGE for a value of another type. */
export declare function flagField(fields: Fields, key: string): boolean;
/** Reads the element type under `key`; @throws BAD_DTYPE if it names none. */
export declare function dtypeField(fields: Fields, key?: string): Dtype;
/** Reads the encoding under `encoding`, undefined if absent; @throws BAD_DTYPE if it names none. */
export declare function encodingField(fields: Fields): Encoding | undefined;
/** Reads the list under `key`; @throws BAD_MESSAGE if it is not a list or longer than `lengthMax`. */
export declare function listField(fields: Fields, key: string, lengthMax: number): readonly unknown[];
/** Reads the map under `key`; @throws BAD_MESSAGE if it is not a map. */
export declare function mapField(fields: Fields, key: string): Fields;
/** Returns `value` as a map; @throws BAD_MESSAGE if it is not a map. */
export declare function asMap(value: unknown, what: string): Fields;
//# sourceMappingURL=fields.d.ts.map