import { type Position } from "../protocol/index.ts";
import type { Cut } from "./points.ts";
import { type HistorySource } from "./source.ts";
/** Options of {@link blameElement}. */
export interface BlameOptions {
    /** Cut after which changes are reported; by default all that are kept. */
    readonly since?: Cut | undefined;
    readonly until: Cut;
    readonly signal: AbortSignal;
    /** Called with each change, in order. */
    readonly onChange: (change: ElementChange) => void;
    readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}
/** Result of {@link blameElement}. */
export interface ElementBlame {
    readonly shard: number;
    readonly from: Position;
    readonly to: Position;
    /** Values at both ends; undefined if the element was not there. */
    readonly first: ElementValue | undefined;
    readonly last: ElementValue | undefined;
    readonly changes: number;
    /** Number of changes to or from values that are not finite; they are in no sum. */
    readonly nonFinite: number;
    /** Sum of the changes of each trainer, by id, without those of steps. */
    readonly trainers: ReadonlyMap<string, ChangeTotal>;
    /** Sum of the changes of each closed step. */
    readonly steps: ReadonlyMap<number, ChangeTotal>;
    /** Sum of all changes: last less first, unless the element was created, dropped or not finite in between. */
    readonly sum: ElementValue;
}
/**
 * Folds the shard of an element again and finds the records that changed it. In `sync` jobs a change is that of a
 * step, with what each trainer's gradient added to the sum.
 * @throws as `replayShard`; BAD_VALUE if the points are of two generations of the shard's journal.
 */
export declare function blameElement(source: HistorySource, place: ElementPlace, options: BlameOptions): Promise<ElementBlame>;
/** A value of an element; 64-bit integers are bigint. */
export type ElementValue = number | bigint;
/** A trainer's part of a step: what its gradients added to the sum of the element's gradients. */
interface StepShare {
    readonly trainer: string;
    readonly gradient: ElementValue;
}
/** A record after which an element had another value. */
export interface ElementChange {
    readonly shard: number;
    readonly position: Position;
    readonly timeMs: number;
    /** `step` if the record closed a step, whose gradients were applied; `drop` if the parameter was removed. */
    readonly kind: "init" | "push" | "set" | "step" | "drop";
    /** Sender of the record, with session and number; undefined for a host's. */
    readonly sender: {
        readonly trainer: string;
        readonly session: number;
        readonly n: number;
    } | undefined;
    /** The step that closed, and its gradients of this element. */
    readonly step: {
        readonly step: number;
        readonly shares: readonly StepShare[];
    } | undefined;
    /** Undefined if the element was not there. */
    readonly before: ElementValue | undefined;
    readonly after: ElementValue | undefined;
    /** After less before, where both are there. */
    readonly change: ElementValue | undefined;
}
/** Sum of the changes of one trainer, or of one step. */
export interface ChangeTotal {
    readonly changes: number;
    readonly sum: ElementValue;
}
/** An element as somebody names it. */
export interface ElementName {
    readonly parameter: string;
    readonly indices: readonly number[];
}
/** The place of an element. */
export interface ElementPlace extends ElementName {
    readonly shard: number;
    /** Number of its block. */
    readonly index: number;
    /** Its index in the parameter, in C order. */
    readonly element: number;
}
/**
 * Parses the name of an element, such as `w[3,4]` or, of a scalar, `s`.
 * @throws BAD_VALUE if the indices are not whole numbers.
 */
export declare function parseElement(text: string): ElementName;
/**
 * Finds the block and the shard of an element, by the parameter's shape at a cut.
 * @throws UNKNOWN_PARAMETER if no such parameter was there, BAD_INDEX if it has no such element; as `replayShard`.
 */
export declare function locateElement(source: HistorySource, cut: Cut, name: ElementName, signal: AbortSignal): Promise<ElementPlace>;
export {};
//# sourceMappingURL=blame.d.ts.map