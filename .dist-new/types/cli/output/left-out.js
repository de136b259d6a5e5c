import { dataBytes } from "../../model-files/index.js";
import { mismatch } from "../../protocol/errors.js";
import { quoteName } from "../../protocol/names.js";
import { formatCount } from "./amounts.js";
/**
 * Returns the tensors of a file that parameters can hold, and tells of each other one: of an element type that
 * no parameter has, or without elements.
 * @throws BAD_DTYPE, BAD_SHAPE naming the first that would be left out if none may be, or if nothing remains.
 */
export function loadableOf(output, model, isStrict) {
    const tensors = model.tensors.filter(({ header }) => dataBytes(header) > 0);
    const empty = model.tensors.filter(({ header }) => dataBytes(header) === 0);
    const leftOut = [
        ...ofUnheldTypes(model),
        ...empty.map(({ header: { name, shape } }) => {
            return { name, code: "BAD_SHAPE", property: `the shape [${shape}]` };
        }),
    ];
    const [first] = leftOut;
    if (first !== undefined && (isStrict || tensors.length === 0)) {
        const { name, code, property } = first;
        const more = leftOut.length > 1 ? `, and ${leftOut.length - 1} more such tensors` : "";
        const expected = "what a parameter can have";
        throw mismatch(code, quoteName(name), expected, property + more, { parameter: name });
    }
    tell(output, leftOut, tensors);
    return { tensors, leftOut: leftOut.map(({ name }) => name) };
}
/** Tells which tensors of a file are not compared, and which are compared as another element type. */
export function tellConversions(output, model) {
    tell(output, ofUnheldTypes(model), model.tensors);
}
function ofUnheldTypes({ skipped }) {
    return skipped.map(({ name, type }) => {
        return { name, code: "BAD_DTYPE", property: `the type ${quoteName(type)}` };
    });
}
function tell(output, leftOut, tensors) {
    for (const { name, property } of leftOut) {
        output.warning(`${quoteName(name)} is left out: no parameter has ${property}`);
    }
    const counts = new Map();
    for (const { conversion } of tensors) {
        if (conversion !== undefined)
            counts.set(conversion, (counts.get(conversion) ?? 0) + 1);
    }
    for (const [conversion, count] of counts) {
        output.message(`${formatCount(count, "tensor")} of ${conversion}; each value stays the same`);
    }
}
//# sourceMappingURL=left-out.js.map