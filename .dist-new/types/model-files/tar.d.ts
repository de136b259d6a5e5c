import type { ModelFile } from "./model-file.ts";
/** Where the fields of a header stand: first byte and length. */
export declare const TAR_FIELDS: {
    readonly name: readonly [0, 100];
    readonly mode: readonly [100, 8];
    readonly uid: readonly [108, 8];
    readonly gid: readonly [116, 8];
    readonly size: readonly [124, 12];
    readonly mtime: readonly [136, 12];
    readonly checksum: readonly [148, 8];
    readonly type: readonly [156, 1];
    readonly magic: readonly [257, 6];
    readonly version: readonly [263, 2];
    readonly prefix: readonly [345, 155];
};
/** Returns the sum of a header's bytes, with spaces in place of its checksum field. */
export declare function tarChecksum(block: Uint8Array): number;
/** A member of an archive. Its data was found to lie in the file. */
export interface TarEntry {
    readonly name: string;
    readonly bytes: number;
    readonly dataAt: number;
    /** Those of the member's own pax records that were asked for. */
    readonly attributes: ReadonlyMap<string, string>;
}
/** Contents of an archive. */
export interface TarContents {
    readonly entries: readonly TarEntry[];
    readonly globalAttributes: ReadonlyMap<string, string>;
}
/**
 * Reads the table of contents of a tar archive: ustar, pax and GNU's long names and sizes. Only regular files
 * are members of a model; the archive must end with its two blocks of zeros. Of pax records only those named
 * in `attributeNames` are kept: others could fill the memory.
 * @throws BAD_FILE, IO.
 */
export declare function readTar(file: ModelFile, attributeNames: readonly string[]): Promise<TarContents>;
/** A file on its way into an archive. `chunks` yields exactly `bytes` bytes. */
export interface TarMember {
    readonly name: string;
    readonly bytes: number;
    /** More pax records for this member. */
    readonly attributes: Readonly<Record<string, string>>;
    readonly chunks: () => AsyncIterable<Uint8Array>;
}
/**
 * Yields the bytes of a ustar archive. A member gets a pax header if its name is not plain ASCII of at most
 * 100 characters, its size does not fit, or it has attributes. Names must not hold NUL.
 * @throws what `chunks` throws.
 */
export declare function writeTar(members: Iterable<TarMember>, globalAttributes: Readonly<Record<string, string>>): AsyncGenerator<Uint8Array, void, undefined>;
//# sourceMappingURL=tar.d.ts.map