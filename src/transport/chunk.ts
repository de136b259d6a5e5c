/** Owner of memory that is lent. */
export interface Lender {
  /** Takes bytes back, once; they must not be used afterwards. */
  giveBack(bytes: Uint8Array): void;
}

/** Bytes read from a broker that begin and end between messages. */
export interface Chunk {
  readonly bytes: Buffer;
  /** Owner to give the bytes back to after handling; undefined if they may be kept. */
  readonly lender: Lender | undefined;
}
