/** Bytes as lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/**
 * A value as vectors show it: JSON where JSON can say it, `{"$bytes": hex}` for bytes and
 * `{"$number": "NaN"}` for the numbers that JSON lacks.
 */
export function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: toHex(value) };
  if (typeof value === "number" && !Number.isFinite(value)) return { $number: String(value) };
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, toJson(entry)]));
}

/** The value that {@link toJson} shows. */
export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== "object" || value === null) return value;
  const entries = value as Record<string, unknown>;
  if ("$bytes" in entries) return Uint8Array.from(Buffer.from(String(entries["$bytes"]), "hex"));
  if ("$number" in entries) return Number(entries["$number"]);
  return Object.fromEntries(Object.entries(entries).map(([key, entry]) => [key, fromJson(entry)]));
}

/** A file of vectors: its sections, one case a line, half of a surrogate pair as an escape. */
export function toFile(
  about: string,
  sections: Readonly<Record<string, readonly object[]>>,
): string {
  const parts = Object.entries(sections).map(([name, cases]) => {
    const lines = cases.map((entry) => `    ${JSON.stringify(entry)}`);
    return `  ${JSON.stringify(name)}: [\n${lines.join(",\n")}\n  ]`;
  });
  return `{\n  "about": ${JSON.stringify(about)},\n${parts.join(",\n")}\n}\n`;
}
