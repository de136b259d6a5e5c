/** Takes back what it has lent. */
export interface Lender {
  /** Takes these bytes back, once; nobody may use them any more. */
  giveBack(bytes: Uint8Array): void;
}

/** Protocol bytes that were read, and begin and end between messages. */
export interface Chunk {
  readonly bytes: Buffer;
  /** Whom the bytes are to be given back to once they have been handled; undefined: kept for ever. */
  readonly lender: Lender | undefined;
}
