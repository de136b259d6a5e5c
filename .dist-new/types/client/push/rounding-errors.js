import { encodeWithErrors } from "../../protocol/encoding/grouped.js";
import { blockRows } from "../../protocol/messages/parts.js";
/** Returns where the elements of a slice, whole rows of a block, lie. */
export function slicePlace(info, { part, index, elements }) {
    const { start, count } = part.place;
    return { info, start, count, rows: index?.rows, elements };
}
/**
 * What rounding has left out of a trainer's gradients, for each element of each parameter: it is added to the next
 * gradient of the element, so that nothing is lost for good. Takes as much memory as the parameters whose gradients
 * are sent in an encoding with scales.
 */
export class RoundingErrors {
    #parameters = new Map();
    /** Returns the errors of all elements of a parameter; undefined if there are none of its epoch yet. */
    find({ name, epoch }) {
        const known = this.#parameters.get(name);
        return known?.epoch === epoch ? known.errors : undefined;
    }
    /** Forgets all errors, after a shard has undone some of the updates that left them. */
    clear() {
        this.#parameters.clear();
    }
    /**
     * Encodes the elements of updates, which follow each other, after adding to each its error, and keeps as its error
     * what is left out now. Updates of a parameter that has been initialized again meanwhile are encoded without.
     */
    encode(encoding, places, elements, to) {
        const counts = places.map((place) => place.elements);
        const held = places.map(({ info }) => this.#of(info));
        const [place] = places;
        const [own] = held;
        if (places.length === 1 && place?.rows === undefined && place && own) {
            const errors = own.subarray(place.start, place.start + place.count);
            encodeWithErrors(encoding, counts, elements, errors, to);
            return;
        }
        const errors = new Float32Array(elements.length);
        gatherErrors(places, held, errors);
        encodeWithErrors(encoding, counts, elements, errors, to);
        let first = 0;
        places.forEach((each, i) => {
            eachRange(each, (start, at, n) => copy(held[i], start, errors, first + at, n));
            first += each.elements;
        });
    }
    /** Returns the errors of a parameter, zeros at first; undefined for a description that is out of date. */
    #of({ name, epoch, layout }) {
        const known = this.#parameters.get(name);
        if (known !== undefined && known.epoch >= epoch) {
            return known.epoch === epoch ? known.errors : undefined;
        }
        const errors = new Float32Array(layout.elements);
        this.#parameters.set(name, { epoch, errors });
        return errors;
    }
}
/** Copies the errors of updates, one behind the other, into an array; zeros for those that have none. */
export function gatherErrors(places, held, into) {
    let first = 0;
    places.forEach((place, i) => {
        eachRange(place, (start, at, n) => copy(into, first + at, held[i], start, n));
        first += place.elements;
    });
}
/** Calls `visit` for ranges of an update: their first element in the parameter and in the update, and their length. */
function eachRange({ info, start, count, rows, elements }, visit) {
    if (rows === undefined) {
        visit(start, 0, elements);
        return;
    }
    const { rowElements } = blockRows({ shape: info.shape, start, count });
    for (let i = 0; i < rows.length; i++) {
        visit(start + rows[i] * rowElements, i * rowElements, rowElements);
    }
}
/** Up to this many elements a loop is faster than a view and a copy of it. */
const LOOP_ELEMENTS_MAX = 32;
function copy(to, toStart, from, fromStart, n) {
    if (to === undefined || from === undefined)
        return;
    if (n > LOOP_ELEMENTS_MAX) {
        to.set(from.subarray(fromStart, fromStart + n), toStart);
        return;
    }
    for (let i = 0; i < n; i++)
        to[toStart + i] = from[fromStart + i];
}
//# sourceMappingURL=rounding-errors.js.map