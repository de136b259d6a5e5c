import type { ModelFile } from "./model-file.ts";
/**
 * Yields the unpacked bytes of a member from `skip` on, in chunks that belong to the receiver. Memory stays
 * bounded whatever the archive claims. The checksum is checked after the last byte.
 * @throws BAD_FILE if the length or checksum is not the one of the directory; IO; CLOSED.
 */
export declare function unpack(file: ModelFile, entry: ZipEntry, skip: number): AsyncGenerator<Uint8Array, void, undefined>;
/**
 * Reads the first `length` unpacked bytes of a member, or all if it has fewer. No checksum is checked.
 * @throws BAD_FILE if they cannot be unpacked; IO; CLOSED.
 */
export declare function unpackBeginning(file: ModelFile, entry: ZipEntry, length: number): Promise<Uint8Array>;
/** The parts of the zip format that the writer and the reader share. */
/** First four bytes of each structure, as little-endian numbers. */
export declare const ZIP_SIGNATURES: {
    readonly local: 67324752;
    readonly descriptor: 134695760;
    readonly central: 33639248;
    readonly end: 101010256;
    readonly end64: 101075792;
    readonly end64Locator: 117853008;
};
/** Lengths of the structures, without names, extra fields and comments. */
export declare const ZIP_BYTES: {
    readonly local: 30;
    readonly central: 46;
    readonly end: 22;
    readonly end64: 56;
    readonly end64Locator: 20;
};
/** How a member is packed. */
export declare const ZIP_METHODS: {
    readonly stored: 0;
    readonly deflated: 8;
};
/** Bits of a member's flags. */
export declare const ZIP_FLAGS: {
    readonly encrypted: 1;
    readonly descriptor: 8;
    readonly utf8: 2048;
};
/** The version of the zip format that supports zip64. */
export declare const ZIP64_VERSION = 45;
/** Id of the extra field that holds 8-byte sizes. */
export declare const ZIP64_EXTRA = 1;
/** Stands in a 4-byte field if the value is in the zip64 extra field. */
export declare const IN_EXTRA_32 = 4294967295;
/** Stands in a 2-byte count if the value is in the zip64 end record. */
export declare const IN_EXTRA_16 = 65535;
/** Bytes of a name, an extra field or the comment, at most. */
export declare const ZIP_TEXT_BYTES_MAX = 65535;
/** A member of an archive. Its data was found to lie in the file, and to overlap no other member's. */
export interface ZipEntry {
    readonly name: string;
    /** Its comment in the central directory, read as UTF-8. */
    readonly comment: string;
    readonly deflated: boolean;
    /** Unpacked bytes, and their checksum, as the archive claims; checked when they are read. */
    readonly bytes: number;
    readonly crc: number;
    readonly packedBytes: number;
    readonly packedAt: number;
    /** Where the header before the data begins. */
    readonly localAt: number;
}
/** Contents of an archive. */
export interface ZipContents {
    readonly entries: readonly ZipEntry[];
    readonly comment: string;
}
/**
 * Reads the table of contents of a zip archive, which is the central directory, and compares each entry with
 * the header before its data.
 * @throws BAD_FILE for anything but stored and deflated members, once each; IO.
 */
export declare function readZip(file: ModelFile): Promise<ZipContents>;
//# sourceMappingURL=zip-reader.d.ts.map