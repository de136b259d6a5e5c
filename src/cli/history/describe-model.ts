import {
  parameterBytes,
  type ReplayedParameter,
  versionsOf,
} from "../../history/replay/replayed-model.ts";
import { formatBytes } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import { formatTable, type Shrink } from "../output/table.ts";
import { describeUpdates, describeVersion, formatShape } from "../output/tensor-summary.ts";

/** Returns a replayed parameter as `--json` prints it. */
export function parameterEntry(parameter: ReplayedParameter): Readonly<Record<string, unknown>> {
  const { name, dtype, shape, epoch, isComplete, blocks } = parameter;
  const { least, most, updates } = versionsOf(parameter);
  const bytes = parameterBytes(parameter);
  const version = { least, most };
  return {
    name,
    dtype,
    shape,
    bytes,
    blocks: blocks.length,
    version,
    updates,
    epoch,
    complete: isComplete,
  };
}

/** Writes replayed parameters as a table. */
export function describeModel(
  parameters: readonly ReplayedParameter[],
  format: TextFormat,
): string[] {
  const columns = [
    { title: "NAME" },
    { title: "DTYPE" },
    { title: "SHAPE" },
    { title: "SIZE", align: "right" },
    { title: "VERSION", align: "right" },
    { title: "UPDATES", align: "right" },
    { title: "" },
  ] as const;
  const rows = parameters.map((parameter) => {
    const { name, dtype, shape, isComplete } = parameter;
    const versions = versionsOf(parameter);
    return [
      name,
      dtype,
      formatShape(shape),
      formatBytes(parameterBytes(parameter)),
      describeVersion(versions),
      describeUpdates(versions),
      isComplete ? "" : "not complete",
    ];
  });
  const shrinks: Shrink[] = [
    { kind: "cut", column: "NAME", to: 20 },
    { kind: "drop", column: "DTYPE" },
    { kind: "cut", column: "SHAPE", to: 10 },
    { kind: "drop", column: "SIZE" },
    { kind: "cut", column: "NAME", to: 12 },
  ];
  return formatTable(columns, rows, format, shrinks);
}
