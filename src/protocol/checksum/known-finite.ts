import type { Encoding } from "../encoding/encodings.ts";
import { lastSurvey } from "./long-checksum.ts";

/** Bytes of a float, and what the upper 16 bits of finite ones are below, the sign left out. */
const FORMS = {
  float32: { bytes: 4, infinity: 0x7f80 },
  float64: { bytes: 8, infinity: 0x7ff0 },
  bfloat16: { bytes: 2, infinity: 0x7f80 },
  float16: { bytes: 2, infinity: 0x7c00 },
} as const satisfies Record<"float32" | "float64" | Encoding, object>;

const LANE_BYTES = 2;

/**
 * Whether the pass over the bytes of the last checksum has found that these elements, which are part of
 * them, are all finite: it sees that at no extra cost. False if it is not known: the elements were no part,
 * or bytes before them look like a float that is not finite. The bytes must not have changed since.
 */
export function isKnownFinite(elements: Uint8Array, form: keyof typeof FORMS): boolean {
  const survey = lastSurvey(elements);
  const { bytes, infinity } = FORMS[form];
  if (survey === undefined || survey.afterBytes % bytes !== 0) return false;
  const step = bytes / LANE_BYTES;
  for (let lane = step - 1; lane < survey.largest.length; lane += step) {
    if ((survey.largest[lane] as number) >= infinity) return false;
  }
  return true;
}
