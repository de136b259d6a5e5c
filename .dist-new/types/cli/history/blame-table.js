import { formatTime } from "../../history/points.js";
import { showPosition } from "../../protocol/messages/position.js";
import { formatNumber } from "../output/amounts.js";
import { formatTable } from "../output/table.js";
import { formatElement } from "../output/tensor-summary.js";
import { fourDigits, jsonNumber } from "./numbers.js";
/** Keeps the largest changes, in their order, so that any number of them takes little memory. */
export class TopChanges {
    #most;
    #kept = [];
    #taken = 0;
    constructor(most) {
        this.#most = most;
    }
    add(change) {
        this.#taken += 1;
        this.#kept.push(change);
        if (this.#kept.length >= 2 * this.#most)
            this.#cut();
    }
    /** The largest changes in the order in which they were added. */
    get changes() {
        this.#cut();
        return this.#kept;
    }
    /** Number of changes that were added and are not kept. */
    get leftOut() {
        return this.#taken - this.changes.length;
    }
    #cut() {
        if (this.#kept.length <= this.#most)
            return;
        const largest = new Set([...this.#kept].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, this.#most));
        this.#kept = this.#kept.filter((change) => largest.has(change));
    }
}
/** Returns the size of a change; one that creates, removes or breaks the value is the largest. */
function sizeOf({ change }) {
    const size = change === undefined ? Number.NaN : Math.abs(Number(change));
    return Number.isNaN(size) ? Number.POSITIVE_INFINITY : size;
}
/** Writes changes as a table. */
export function describeChanges(changes, format) {
    const columns = [
        { title: "TIME" },
        { title: "POSITION" },
        { title: "UPDATE" },
        { title: "WHAT" },
        { title: "BEFORE", align: "right" },
        { title: "AFTER", align: "right" },
        { title: "CHANGE", align: "right" },
    ];
    const rows = changes.map((change) => [
        formatTime(change.timeMs),
        showPosition(change.shard, change.position),
        senderCell(change),
        whatCell(change),
        valueText(change.before),
        valueText(change.after),
        change.change === undefined ? "" : shortValue(change.change),
    ]);
    const shrinks = [
        { kind: "drop", column: "TIME" },
        { kind: "wrap", column: "WHAT", to: 24 },
        { kind: "cut", column: "UPDATE", to: 16 },
        { kind: "drop", column: "BEFORE" },
    ];
    return formatTable(columns, rows, format, shrinks);
}
/** Writes the sums of trainers, or in sync jobs of steps, as a table. */
export function describeTotals({ trainers, steps }, format) {
    const rows = [
        ...[...trainers].map(([trainer, total]) => totalRow(trainer, total)),
        ...[...steps].map(([step, total]) => totalRow(`step ${step}`, total)),
    ];
    const columns = [
        { title: "OF" },
        { title: "CHANGES", align: "right" },
        { title: "SUM", align: "right" },
    ];
    return formatTable(columns, rows, format);
}
/** Returns a change as `--json` prints it. */
export function changeEntry(change) {
    const { shard, position, timeMs, kind, sender, step, before, after } = change;
    return {
        ...{ time: formatTime(timeMs), shard, ...position, kind },
        ...sender,
        ...(step && {
            step: step.step,
            shares: step.shares.map(({ trainer, gradient }) => ({
                trainer,
                gradient: jsonValue(gradient),
            })),
        }),
        ...{ before: jsonValue(before), after: jsonValue(after), change: jsonValue(change.change) },
    };
}
/** Returns the sums as `--json` prints them. */
export function blameEntry(blame) {
    const { from, to, first, last, changes, nonFinite, trainers, steps, sum } = blame;
    const totals = (of, name) => [...of].map(([key, total]) => ({
        [name]: key,
        changes: total.changes,
        sum: jsonValue(total.sum),
    }));
    return {
        ...{ from, to, first: jsonValue(first), last: jsonValue(last), changes, nonFinite },
        ...{ trainers: totals(trainers, "trainer"), steps: totals(steps, "step"), sum: jsonValue(sum) },
    };
}
/** Writes a value for people. */
export function valueText(value) {
    if (value === undefined)
        return "none";
    if (typeof value === "bigint")
        return String(value);
    // The shortest text that a float32 reads back from, where it is one.
    const isSingle = Object.is(Math.fround(value), value);
    return formatElement(isSingle ? Float32Array.of(value) : Float64Array.of(value), 0);
}
function shortValue(value) {
    return typeof value === "bigint" ? String(value) : fourDigits(value);
}
function jsonValue(value) {
    if (value === undefined)
        return null;
    return typeof value === "bigint" ? String(value) : jsonNumber(value);
}
function senderCell({ sender }) {
    return sender === undefined ? "a host" : `${sender.trainer}/${sender.session}:${sender.n}`;
}
function whatCell({ kind, step }) {
    if (step === undefined)
        return kind;
    const shares = step.shares.map(({ trainer, gradient }) => `${trainer} ${shortValue(gradient)}`);
    return `step ${step.step}: ${shares.join(", ") || "no gradient"}`;
}
function totalRow(name, { changes, sum }) {
    return [name, formatNumber(changes), shortValue(sum)];
}
//# sourceMappingURL=blame-table.js.map