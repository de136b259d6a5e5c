/** The entries of a JSON object that another program has written; undefined if the text is not one. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    // Not JSON: the caller decides what that means.
    return undefined;
  }
}
