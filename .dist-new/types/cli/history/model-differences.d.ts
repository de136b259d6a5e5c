import { type ParameterDifference } from "../../history/compare-models.ts";
import type { ResolvedPoint } from "../../history/points.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import { type OpenModel } from "../../model-files/index.ts";
import type { TextFormat } from "../output/colors.ts";
import type { Output } from "../output/output.ts";
/** One of two models that are compared: at a point of the history, or in a file. */
export type ComparedSide = {
    readonly kind: "point";
    readonly point: ResolvedPoint;
    readonly model: ReplayedModel;
} | {
    readonly kind: "file";
    readonly path: string;
    readonly model: OpenModel;
};
/** The selection of what is compared. */
export interface ComparedParts {
    /** The parameters that were asked for; undefined for all. Those that were being initialized are left out. */
    readonly names: readonly string[] | undefined;
    /** Whether sparse shards are joined, as a save joins them. */
    readonly asSaved: boolean;
}
/**
 * Compares two models and shows the progress.
 * @throws UNKNOWN_PARAMETER for a name that neither model has; as `compareModels`.
 */
export declare function compareSides(output: Output, sides: readonly ComparedSide[], { names, asSaved }: ComparedParts, signal: AbortSignal): Promise<ParameterDifference[]>;
/** Returns a comparison of one parameter as `--json` prints it. */
export declare function differenceEntry(found: ParameterDifference): Readonly<Record<string, unknown>>;
/** Writes comparisons as a table. */
export declare function describeDifferences(differences: readonly ParameterDifference[], format: TextFormat): string[];
//# sourceMappingURL=model-differences.d.ts.map