/** The entries of a message but `crc`, `v` and `data`. */
export type Fields = Readonly<Record<string, unknown>>;
/** A decoded message. `data` is a view of the received buffer: copy it before keeping it. */
export interface Message {
    readonly fields: Fields;
    readonly data: Uint8Array;
}
/** A message being built; fill `data`, the place of the tensor bytes, before sealing it. */
export interface DraftMessage {
    readonly bytes: Uint8Array;
    readonly data: Uint8Array;
}
/** Returns memory of this many bytes, not cleared. */
export type Allocate = (bytes: number) => Buffer;
/**
 * Begins a message with room for `dataBytes` tensor bytes. Fill `data`, then call {@link sealMessage}. The
 * caller owns the bytes, which come from `allocate` if given. Undefined entries are left out.
 * @throws BAD_VALUE for text that is not well-formed, INTERNAL for what no message can carry.
 */
export declare function draftMessage(fields: Fields, dataBytes?: number, allocate?: Allocate): DraftMessage;
/**
 * Writes the checksum into a drafted message and returns its bytes. `dataCrc`: the checksum of the
 * tensor bytes alone, if it is known already.
 */
export declare function sealMessage(draft: DraftMessage, dataCrc?: number): Uint8Array;
/** Makes a whole message; `data` is copied. */
export declare function encodeMessage(fields: Fields, data?: Uint8Array): Uint8Array;
/**
 * Reads one message. Only its form is checked; see `fields.ts` for its values. `headerBytesMax`: as in
 * {@link decodeSealed}.
 * @throws BAD_MESSAGE if it is malformed or truncated, BAD_CHECKSUM if a bit has changed,
 * BAD_VERSION if it is of another protocol version.
 */
export declare function decodeMessage(bytes: Uint8Array, headerBytesMax?: number): Message;
/**
 * Returns whether bytes have the envelope of a message with a matching checksum. For junk it makes no error,
 * which would cost more than the check.
 */
export declare function isSealed(bytes: Uint8Array): boolean;
/**
 * Reads one message for which {@link isSealed} holds. `headerBytesMax`: bytes after which no value may
 * begin, which bounds the work.
 * @throws BAD_MESSAGE if it is malformed, BAD_VERSION if it is of another protocol version.
 */
export declare function decodeSealed(bytes: Uint8Array, headerBytesMax?: number): Message;
/** Reads the checksum in a message that has the envelope; it identifies a journal record. */
export declare function readCrc(bytes: Uint8Array): number;
/** Writes any plain value as msgpack, such as the state in a snapshot. The caller owns the bytes. */
export declare function packValue(value: unknown): Uint8Array;
/**
 * Reads a value that {@link packValue} has written.
 * @throws BAD_MESSAGE if the bytes are not valid msgpack.
 */
export declare function unpackValue(bytes: Uint8Array): unknown;
//# sourceMappingURL=codec.d.ts.map