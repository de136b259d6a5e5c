import { inspect } from "node:util";
import { expect, test } from "vitest";
import type { Fields } from "../../src/protocol/codec.ts";
import { refusalOf } from "./refusal.ts";

/** A wrong value of one entry, with the code of its refusal if that is not BAD_MESSAGE. */
export type WrongEntry = readonly [key: string, value: unknown, code?: string];

/**
 * Tests that a reader refuses entries each of which is wrong in one place, or lacks one, with an
 * error that names it. `named`: entries whose errors go by another name.
 */
export function testRefusals(
  good: Fields,
  read: (fields: Fields) => unknown,
  wrong: readonly WrongEntry[],
  named: Readonly<Record<string, string>> = {},
): void {
  for (const [key, value, code = "BAD_MESSAGE"] of wrong) {
    const shown = inspect(value, { breakLength: Number.POSITIVE_INFINITY }).slice(0, 60);
    test(`is refused with ${key}: ${shown}`, () => {
      const error = refusalOf(() => read({ ...good, [key]: value }));
      expect(error.code).toBe(code);
      expect(error.message).toContain(named[key] ?? key);
    });
  }
}
