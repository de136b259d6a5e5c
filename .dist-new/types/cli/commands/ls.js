import { tensorBytes } from "../../protocol/tensor.js";
import { addHelp, openOutput } from "../context.js";
import { withAdmin } from "../open-job.js";
import { addAskingOptions } from "../options/connection-options.js";
import { formatBytes } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
import { describeUnknown, describeUpdates, describeVersion, formatShape, versionEntries, } from "../output/tensor-summary.js";
const TIMEOUT_MS = 5_000;
/** Adds the command `pserver ls`, which lists the parameters of a job. */
export function registerLs(program, context) {
    const command = program.command("ls").description("list the parameters of a job");
    addAskingOptions(command, TIMEOUT_MS).action(async (flags) => {
        const output = openOutput(context, flags);
        const { parameters, known } = await withAdmin(context, flags, async (admin) => {
            const { parameters: all } = await admin.statusAndParameters();
            const ready = all.filter((info) => info.ready).map(({ name }) => name);
            return { parameters: all, known: await admin.versions(ready) };
        });
        const listed = parameters.map((info) => ({ info, versions: known.versions.get(info.name) }));
        if (output.json)
            output.value(listed.map(listedParameter));
        else if (listed.length === 0)
            output.message(`job ${flags.job} has no parameters`);
        else
            output.lines(describeParameters(listed, output));
        const unknown = describeUnknown(known);
        if (unknown !== undefined)
            output.warning(unknown);
    });
    addHelp(command, {
        "With --json": [
            '  A list of {"name","dtype","shape","bytes","blocks","version","updates","epoch","ready",',
            '  "config"}, by name. The version is {"least","most"} of the blocks, 1 after their init and 1 more',
            "  with each change; updates are all changes of blocks. Both are null where they are not known.",
        ],
        Examples: ["  pserver ls", "  pserver ls --json | jq -r '.[].name'"],
    });
}
/** Returns a parameter as `--json` prints it. */
export function listedParameter({ info, versions, }) {
    const { name, dtype, shape, epoch, ready, config, layout } = info;
    const bytes = tensorBytes(dtype, shape);
    const { blocks } = layout;
    const { version, updates } = versionEntries(versions);
    return { name, dtype, shape, bytes, blocks, version, updates, epoch, ready, config };
}
/** Writes the parameters as a table; cuts the middle out of a name or shape that is too long. */
export function describeParameters(parameters, format) {
    const columns = [
        { title: "NAME" },
        { title: "DTYPE" },
        { title: "SHAPE" },
        { title: "SIZE", align: "right" },
        { title: "BLOCKS", align: "right" },
        { title: "VERSION", align: "right" },
        { title: "UPDATES", align: "right" },
        { title: "EPOCH", align: "right" },
        { title: "" },
    ];
    const rows = parameters.map(({ info, versions }) => {
        const { name, dtype, shape, layout, epoch, ready } = info;
        return [
            name,
            dtype,
            formatShape(shape),
            formatBytes(tensorBytes(dtype, shape)),
            String(layout.blocks),
            ready ? describeVersion(versions) : "",
            ready ? describeUpdates(versions) : "",
            String(epoch),
            ready ? "" : "not ready",
        ];
    });
    const shrinks = [
        { kind: "drop", column: "EPOCH" },
        { kind: "drop", column: "BLOCKS" },
        { kind: "cut", column: "NAME", to: 20 },
        { kind: "drop", column: "DTYPE" },
        { kind: "cut", column: "SHAPE", to: 10 },
        { kind: "drop", column: "SIZE" },
        { kind: "cut", column: "NAME", to: 12 },
        { kind: "drop", column: "SHAPE" },
    ];
    return formatTable(columns, rows, format, shrinks);
}
//# sourceMappingURL=ls.js.map