import { PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";

/** Most bytes of a model's metadata as JSON: the longest comment of a zip archive. */
const METADATA_BYTES_MAX = 65_535;

/** Text about a model, by key. */
export type Metadata = Readonly<Record<string, string>>;

/**
 * Refuses metadata that not every format can hold.
 * @throws BAD_VALUE naming the key of a value that is not well-formed text; TOO_LARGE above 65,535
 * bytes as JSON.
 */
export function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value === "string" && value.isWellFormed() && key.isWellFormed()) continue;
    const received = typeof value === "string" ? "a lone surrogate" : `a ${typeof value}`;
    throw new PserverError(
      "BAD_VALUE",
      `metadata ${quoteName(key)}: expected well-formed text; received ${received}`,
      { key, received },
    );
  }
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= METADATA_BYTES_MAX) return;
  throw new PserverError(
    "TOO_LARGE",
    `metadata: expected at most ${METADATA_BYTES_MAX} bytes as JSON; received ${bytes}`,
    { expected: METADATA_BYTES_MAX, received: bytes },
  );
}

/** The metadata as JSON, or `""` if there is none. */
export function encodeMetadata(metadata: Metadata): string {
  return Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : "";
}

/** The metadata that JSON text holds, or `undefined` if it is not an object of texts, or too large. */
export function parseMetadata(text: string): Metadata | undefined {
  if (text.length > METADATA_BYTES_MAX) return undefined;
  try {
    return metadataFrom(JSON.parse(text));
  } catch {
    // The caller knows whether the text had to be metadata.
    return undefined;
  }
}

/** The metadata that a parsed JSON value is, or `undefined` if it is not an object of texts. */
export function metadataFrom(value: unknown): Metadata | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.some(([, text]) => typeof text !== "string")) return undefined;
  // Not an assignment per key: a key may be called __proto__.
  return Object.fromEntries(entries);
}
