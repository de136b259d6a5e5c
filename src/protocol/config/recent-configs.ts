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
 * As {@link toConfig}, for what messages and records hold: the parameters of a model have few configurations, so
 * most inputs equal one of the last, whose configuration is returned again. The input must not be changed later.
 * @throws BAD_CONFIG as {@link toConfig} does.
 */
export function toSharedConfig(input: object): ParameterConfig {
  // Its bytes may lie in a buffer that is used again.
  if (isPaddleConfigs(input)) return toConfig(input);
  const at = recent.findIndex((known) => isDeepStrictEqual(known.input, input));
  const found = recent[at] ?? { input, config: toConfig(input) };
  if (at === 0) return found.config;
  if (at > 0) recent.splice(at, 1);
  recent.unshift(found);
  if (recent.length > RECENT_MAX) recent.pop();
  return found.config;
}
