/** The parts of the zip format that the writer and the reader share. */

/** First four bytes of each structure, as little-endian numbers. */
export const ZIP_SIGNATURES = {
  local: 0x04034b50,
  descriptor: 0x08074b50,
  central: 0x02014b50,
  end: 0x06054b50,
  end64: 0x06064b50,
  end64Locator: 0x07064b50,
} as const;

/** Lengths of the structures, without names, extra fields and comments. */
export const ZIP_BYTES = {
  local: 30,
  central: 46,
  end: 22,
  end64: 56,
  end64Locator: 20,
} as const;

/** How a member is packed. */
export const ZIP_METHODS = { stored: 0, deflated: 8 } as const;

/** Bits of a member's flags. */
export const ZIP_FLAGS = { encrypted: 0x0001, descriptor: 0x0008, utf8: 0x0800 } as const;

/** The version of the zip format that supports zip64. */
export const ZIP64_VERSION = 45;

/** Id of the extra field that holds 8-byte sizes. */
export const ZIP64_EXTRA = 0x0001;

/** Stands in a 4-byte field if the value is in the zip64 extra field. */
export const IN_EXTRA_32 = 0xffffffff;

/** Stands in a 2-byte count if the value is in the zip64 end record. */
export const IN_EXTRA_16 = 0xffff;

/** Bytes of a name, an extra field or the comment, at most. */
export const ZIP_TEXT_BYTES_MAX = 0xffff;
