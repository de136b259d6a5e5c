import { isDeepStrictEqual } from "node:util";
import { isPaddleConfigs } from "./paddle/from-paddle.ts";
import type { ParameterConfig } from "./parameter-config.ts";
import { toConfig } from "./to-config.ts";

/** Different configurations of one model, at most, that make reading its parameters fast. */
const RECENT_MAX = 8;

interface Recent {
  readonly input: object;
  readonly config: ParameterConfig;
}

/** The most recent first. */
const recent: Recent[] = [];

/**
 * As {@link toConfig}: the parameters of a model have few configurations, so most inputs equal one of the last, whose
 * configuration is returned again.
 * @throws BAD_CONFIG as {@link toConfig} does.
 */
export function toSharedConfig(input: unknown = {}): ParameterConfig {
  // Texts and bytes take longer to compare than objects.
  if (typeof input !== "object" || input === null || ArrayBuffer.isView(input)) {
    return toConfig(input);
  }
  if (isPaddleConfigs(input)) return toConfig(input);
  const at = recent.findIndex((known) => isDeepStrictEqual(known.input, input));
  const found = recent[at] ?? read(input);
  if (at === 0) return found.config;
  if (at > 0) recent.splice(at, 1);
  recent.unshift(found);
  if (recent.length > RECENT_MAX) recent.pop();
  return found.config;
}

/** The input is copied, because its owner may change it later. */
function read(input: object): Recent {
  const config = toConfig(input);
  return { input: structuredClone(input), config };
}
