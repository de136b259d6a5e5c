import type { Dtype, Encoding } from "../../protocol/dtypes.ts";
import type { UpdateEvent, UpdateVerb } from "./describe-record.ts";
/** Version of the lines in a message. */
export declare const TAPE_FORMAT = 1;
/** Verbs by their number in a line. */
export declare const TAPE_VERBS: readonly UpdateVerb[];
/** Outcomes by their number. */
export declare const TAPE_OUTCOMES: readonly ["applied", "rejected", "repeated", "unreadable"];
/** Operations by their number. */
export declare const TAPE_OPERATIONS: readonly ["init", "set", "mix", "grad"];
/** Element types by their number. */
export declare const TAPE_DTYPES: readonly Dtype[];
/** Encodings by their number; 0 is none. */
export declare const TAPE_ENCODINGS: readonly (Encoding | undefined)[];
/** Bits of a record's first byte; the lowest two are the outcome. */
export declare const RECORD: {
    readonly sender: number;
    readonly step: number;
    readonly note: number;
    readonly bytes: number;
    readonly entries: number;
    /** The record could not be described; the error follows. */
    readonly undescribed: 128;
};
/** Bits of an entry's first byte. */
export declare const ENTRY: {
    /** Operation, element type and encoding are the same as in the previous entry of the message. */
    readonly alike: 1;
    readonly part: 2;
    readonly version: 4;
    readonly behind: 8;
    readonly statistics: 16;
    /** The statistics are float64. */
    readonly wide: 32;
    /** Some elements are zero or not finite. */
    readonly counts: 64;
};
/** Writes numbers and bytes one after the other into memory that grows. Numbers are little-endian. */
export declare class ByteWriter {
    #private;
    constructor(capacity: number);
    /** Bytes written. */
    get length(): number;
    /** A view of the bytes written, valid until the next call. */
    get bytes(): Uint8Array;
    /** Drops everything written after the first `length` bytes; keeps the memory. */
    truncate(length: number): void;
    uint8(value: number): void;
    /**
     * Writes a whole number from 0 to 2^53 − 1, in groups of 7 bits, the lowest first.
     * @throws INTERNAL for anything else.
     */
    varint(value: number): void;
    float32(value: number): void;
    float64(value: number): void;
    /** Writes the number of bytes, then the bytes. */
    block(bytes: Uint8Array): void;
}
/** The lines of one message, and the fields that are needed to read them. */
export interface TapeLines {
    readonly fields: {
        readonly format: number;
        readonly generation: number;
        /** Sequence of the first record that the message has lines of. */
        readonly from: number;
        /** Up to this record the tape has all lines, with this message and those before it. */
        readonly to: number;
        /** Time of the first record in microseconds since 1970; later lines have differences. */
        readonly timeUs: number;
        /** Texts that lines refer to by their place in this list. */
        readonly names: readonly string[];
    };
    readonly data: Uint8Array;
}
/** Writes updates as lines of a tape message, and returns the whole message. */
export declare class TapeEncoder {
    #private;
    /** `after` is the last record before the message. */
    constructor(generation: number, after: number);
    /** Estimate of the message's bytes. */
    get bytes(): number;
    get isEmpty(): boolean;
    /** How many records the message has lines of. */
    get records(): number;
    /**
     * Adds updates of one record, from the first one's entry on. `isWhole` says that they include the record's last.
     * @throws INTERNAL if they cannot be written; then nothing is added.
     */
    add(events: readonly UpdateEvent[], isWhole: boolean): void;
    /** The last record that the message has lines of. */
    get lastSeq(): number;
    /** Returns the message of everything added. Its bytes are valid until the next {@link clear}. */
    take(): TapeLines;
    /** Begins the next message. */
    clear(): void;
}
//# sourceMappingURL=tape-encoder.d.ts.map