/** A file on its way into an archive. `chunks` yields exactly `bytes` bytes. */
export interface ZipMember {
    readonly name: string;
    /** Its comment in the central directory. */
    readonly comment?: string;
    readonly bytes: number;
    readonly chunks: () => AsyncIterable<Uint8Array>;
}
/**
 * Yields the bytes of a zip archive. Members are stored, each followed by its checksum, which is known only
 * then. Sizes of 4 GiB and more take their 8-byte forms.
 * @throws TOO_LARGE for a name or comment above 65,535 bytes; what `chunks` throws.
 */
export declare function writeZip(members: readonly ZipMember[], comment: string): AsyncGenerator<Uint8Array, void, undefined>;
//# sourceMappingURL=zip-writer.d.ts.map