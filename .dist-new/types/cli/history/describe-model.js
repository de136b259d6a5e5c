import { parameterBytes } from "../../history/replay/replayed-model.js";
import { formatBytes } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
import { describeUpdates, describeVersion, formatShape } from "../output/tensor-summary.js";
/** Returns the least and the largest version, and the number of updates, of a parameter's blocks. */
export function versionsOf({ blocks }) {
    const versions = blocks.map(({ version }) => version);
    const updates = blocks.reduce((sum, block) => sum + block.updates, 0);
    return { least: Math.min(...versions), most: Math.max(...versions), updates };
}
/** Returns a replayed parameter as `--json` prints it. */
export function parameterEntry(parameter) {
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
export function describeModel(parameters, format) {
    const columns = [
        { title: "NAME" },
        { title: "DTYPE" },
        { title: "SHAPE" },
        { title: "SIZE", align: "right" },
        { title: "VERSION", align: "right" },
        { title: "UPDATES", align: "right" },
        { title: "" },
    ];
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
    const shrinks = [
        { kind: "cut", column: "NAME", to: 20 },
        { kind: "drop", column: "DTYPE" },
        { kind: "cut", column: "SHAPE", to: 10 },
        { kind: "drop", column: "SIZE" },
        { kind: "cut", column: "NAME", to: 12 },
    ];
    return formatTable(columns, rows, format, shrinks);
}
//# sourceMappingURL=describe-model.js.map