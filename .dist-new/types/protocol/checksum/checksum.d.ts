/** Length from which it is faster to let the kernel shorten the bytes first. */
export declare const LONG_BYTES: number;
/**
 * Computes the CRC-32 (IEEE) of at least {@link LONG_BYTES} bytes; `previous` continues an earlier one. Takes
 * a half to a third of the time of zlib in Node.js, which does not multiply without carries.
 */
export declare function longChecksum(bytes: Uint8Array, previous: number): number;
/**
 * Returns what the pass over the bytes of this thread's last checksum found; undefined if `range` was not
 * wholly part of them. The bytes must not have changed since.
 *
 * @returns the largest of each 16 bits of a vector of 16 bytes, without the highest bit, over all bytes of
 * the checksum, which may be more than the range; and how many bytes before the end of a vector the
 * range ends.
 */
export declare function lastSurvey(range: Uint8Array): {
    readonly largest: Readonly<Uint16Array>;
    readonly afterBytes: number;
} | undefined;
/** Forgets what {@link lastSurvey} knows, and with it the bytes. */
export declare function forgetSurvey(): void;
/** Computes the CRC-32 (IEEE) of bytes; `previous` continues an earlier checksum. */
export declare function checksum(bytes: Uint8Array, previous?: number): number;
/**
 * Computes the checksum of two concatenated byte strings from their checksums and the length of the second.
 * Takes about a microsecond, whatever the length.
 */
export declare function joinChecksums(first: number, second: number, secondBytes: number): number;
/**
 * For each form of floats: the bytes of one, and the upper 16 bits of infinity. Without the sign, those of a
 * finite float are smaller.
 */
declare const FORMS: {
    readonly float32: {
        readonly bytes: 4;
        readonly infinity: 32640;
    };
    readonly float64: {
        readonly bytes: 8;
        readonly infinity: 32752;
    };
    readonly bfloat16: {
        readonly bytes: 2;
        readonly infinity: 32640;
    };
    readonly float16: {
        readonly bytes: 2;
        readonly infinity: 31744;
    };
};
/**
 * Returns whether the pass over the bytes of the last checksum has found these elements, which are part of
 * them, to be all finite. False means that it is not known: the elements were not part of the bytes, or bytes
 * before them look like a float that is not finite. The bytes must not have changed since.
 */
export declare function isKnownFinite(elements: Uint8Array, form: keyof typeof FORMS): boolean;
export {};
//# sourceMappingURL=checksum.d.ts.map