import { PserverError } from "../../protocol/errors.ts";

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Milliseconds of a duration as the `nats` command takes it: `5s`, `500ms`, `1m30s`.
 * @throws BAD_VALUE for any other text.
 */
export function parseDuration(text: string, what: string): number {
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) {
    let totalMs = 0;
    for (const [, count = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
      totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
    }
    if (totalMs > 0) return totalMs;
  }
  throw new PserverError(
    "BAD_VALUE",
    `${what}: expected a duration such as 5s or 500ms; received ${JSON.stringify(text)}`,
    { expected: "a duration", received: text },
  );
}
