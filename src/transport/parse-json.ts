import { mismatch } from "../protocol/mismatch.ts";
import { visible } from "../protocol/visible.ts";

const SHOWN_MAX = 60;

/** JSON that a broker has sent; @throws BAD_MESSAGE, showing the beginning of the text, if it is not JSON. */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const received = visible(JSON.stringify(text.slice(0, SHOWN_MAX)));
    throw mismatch("BAD_MESSAGE", what, "JSON", received, {}, { cause });
  }
}
