import { basename, dirname, extname, resolve, sep } from "node:path";
import { formatOf, MODEL_ENDINGS, saveModel, unknownName } from "../../model-files/index.js";
import { PserverError } from "../../protocol/errors.js";
import { checkTensorTarget, writeTensorFile } from "../tensor-files.js";
/** Endings of files that hold one tensor. */
const TENSOR_ENDINGS = [".npy", ".json", ".bin", ".raw"];
/**
 * Checks, before anything is replayed, that a model can be written under this name.
 * @throws BAD_VALUE for an ending that goes with no format, or with one tensor where there may be several;
 * IO if it names no place for a file.
 */
export async function checkModelTarget(path, isOneParameter) {
    if (isTensorFile(path)) {
        if (isOneParameter)
            return await checkTensorTarget(path);
        const text = `--out ${path}: a file of one tensor; expected one --param with it`;
        throw new PserverError("BAD_VALUE", text, { received: path });
    }
    if (formatOf(path) !== undefined)
        return;
    throw new PserverError("BAD_VALUE", `--out: expected a name ending in ${MODEL_ENDINGS.join(", ")} or /, or, for one parameter, in ${TENSOR_ENDINGS.join(", ")}; received ${unknownName(path)}`, { received: path });
}
/**
 * Writes parameters of a replayed model into a file on this machine, in the format of its ending. It
 * appears whole or not at all.
 * @throws BAD_PATH, IO, DISK_FULL; the reason of `signal`.
 */
export async function writeModel(path, { model, parameters, job, point }, signal) {
    const [only] = parameters;
    if (isTensorFile(path) && only !== undefined) {
        const tensor = await model.tensor(only.name);
        const bytes = await writeTensorFile(path, only.name, tensor, { signal });
        return { file: path, bytes, format: extname(path).slice(1) };
    }
    const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]));
    const absolute = resolve(path);
    const isDirectory = path.endsWith("/") || path.endsWith(sep);
    const saved = await saveModel({
        directory: dirname(absolute),
        path: `${basename(absolute)}${isDirectory ? "/" : ""}`,
        tensors: parameters.map(({ name, dtype, shape }) => ({ name, dtype, shape })),
        chunks: async function* ({ name }) {
            const parameter = byName.get(name);
            if (parameter !== undefined)
                yield* model.chunks(parameter);
        },
        metadata: { job, format: "nats-pserver", point },
        signal,
    });
    return { ...saved, file: path };
}
function isTensorFile(path) {
    return TENSOR_ENDINGS.includes(extname(path).toLowerCase());
}
//# sourceMappingURL=write-model.js.map