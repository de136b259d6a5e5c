// Proves what `pserver ls` shows of each parameter: its version as one number or the blocks' span, how often
// it changed, `?` where that is not known; and that its table fits narrow terminals and keeps these.
import { expect, test } from "vitest";
import { describeParameters, listedParameter } from "../../../src/cli/commands/ls.ts";
import { makePaint } from "../../../src/cli/output/colors.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { computeLayout } from "../../../src/protocol/layout.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";

const PAINT = makePaint(false);
const WIDE = { paint: PAINT, width: Number.POSITIVE_INFINITY };

function parameter(name: string, ready = true): ParameterInfo {
  const declaration = { name, dtype: "float32", shape: [3072, 1024] } as const;
  const layout = computeLayout({ ...declaration, shards: 4, maxPayloadBytes: 8 * 1024 * 1024 });
  return { ...declaration, config: toConfig({}), epoch: 1, ready, layout, firstNumber: 1 };
}

test("tells versions and updates, and what is not known", () => {
  const rows = describeParameters(
    [
      { info: parameter("a"), versions: { least: 3, most: 3, updates: 24 } },
      { info: parameter("b"), versions: { least: 7, most: 1_009, updates: 12_345 } },
      { info: parameter("c"), versions: undefined },
      { info: parameter("d", false), versions: undefined },
    ],
    WIDE,
  );
  expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
    ["NAME", "DTYPE", "SHAPE", "SIZE", "BLOCKS", "VERSION", "UPDATES", "EPOCH"],
    ["a", "float32", "(3072, 1024)", "12 MiB", "12", "3", "24", "1"],
    ["b", "float32", "(3072, 1024)", "12 MiB", "12", "7–1,009", "12,345", "1"],
    ["c", "float32", "(3072, 1024)", "12 MiB", "12", "?", "?", "1"],
    ["d", "float32", "(3072, 1024)", "12 MiB", "12", "1", "not ready"],
  ]);
});

test("as JSON has versions as numbers, and null where they are not known", () => {
  const info = parameter("a");
  const known = listedParameter({ info, versions: { least: 1, most: 2, updates: 1 } });
  expect(known).toMatchObject({ version: { least: 1, most: 2 }, updates: 1, blocks: 12 });
  const unknown = listedParameter({ info, versions: undefined });
  expect(unknown).toMatchObject({ version: null, updates: null });
});

test.each([60, 80, 120])("fits %i columns with names, versions and updates", (width) => {
  const rows = describeParameters(
    [
      {
        info: parameter("transformer.encoder.layer.11.attention.weight"),
        versions: { least: 12_345, most: 12_349, updates: 148_140 },
      },
      { info: parameter("b", false), versions: undefined },
    ],
    { paint: PAINT, width },
  );
  expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(width);
  const text = rows.join("\n");
  expect(text).toMatch(/^transf.*eight /m);
  expect(text).toContain("12,345–12,349");
  expect(text).toContain("148,140");
  expect(text).toMatch(/^b .* not ready$/m);
});
