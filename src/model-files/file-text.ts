import { badFile } from "./bad-file.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The text of bytes of a file.
 * @throws BAD_FILE naming `what` if they are not UTF-8.
 */
export function decodeFileText(path: string, what: string, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw badFile(path, `text of ${what}`, "UTF-8", "other bytes", cause);
  }
}

/**
 * The value of JSON text of a file.
 * @throws BAD_FILE naming `what` if it is not JSON.
 */
export function parseFileJson(path: string, what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badFile(path, what, "JSON", JSON.stringify(text.slice(0, 60)), cause);
  }
}
