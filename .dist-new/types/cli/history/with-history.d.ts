import type { Command } from "commander";
import type { UpdateEvent } from "../../actors/journal/describe-record.ts";
import type { Rebuild } from "../../history/continue/fork-job.ts";
import { type Cut, type Point, type ResolvedPoint } from "../../history/points.ts";
import type { UpdateQuery } from "../../history/read-updates.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import type { Replayer } from "../../history/replay/replayer.ts";
import type { HistoryPlace, HistorySource } from "../../history/source.ts";
import type { CliContext } from "../context.ts";
import type { HistoryFlags } from "../options/history-options.ts";
import type { Output } from "../output/output.ts";
/** The history that a command reads. */
export interface OpenedHistory {
    readonly source: HistorySource;
    /** Where it is, for threads that open it again. */
    readonly place: HistoryPlace;
}
/**
 * Runs `use` with the history that the flags name.
 * @throws as `openHistory` does; what `use` throws; the reason of the context's signal.
 */
export declare function withHistory<T>(context: CliContext, flags: HistoryFlags, use: (history: OpenedHistory) => Promise<T>): Promise<T>;
/** Rebuilds the model at a point, and shows the progress. */
export type Replay = (point: Pick<ResolvedPoint, "cut">) => Promise<ReplayedModel>;
/**
 * Runs `use` with threads that rebuild shards; they end with it.
 * @throws what `use` throws.
 */
export declare function withPool<T>({ signal }: CliContext, { source, place }: OpenedHistory, use: (pool: Replayer) => Promise<T>): Promise<T>;
/**
 * Runs `use` with replays on threads; the models that it gets are freed when it ends.
 * @throws what `use` throws; a replay throws as `replayModel` does.
 */
export declare function withReplays<T>(context: CliContext, output: Output, history: OpenedHistory, use: (replay: Replay) => Promise<T>): Promise<T>;
/** Returns a function that rebuilds shards of a history, with a line of progress for each. */
export declare function rebuildWithProgress(output: Output, source: HistorySource, signal: AbortSignal): Promise<Rebuild>;
/**
 * Resolves the point that a text names, and shows how it was understood.
 * @throws BAD_VALUE, HISTORY_LOST as `parsePoint` and `resolvePoint` do.
 */
export declare function resolvePointText(context: CliContext, output: Output, source: HistorySource, text: string): Promise<ResolvedPoint>;
/**
 * Resolves a point, and shows how it was understood.
 * @throws as `resolvePoint` does.
 */
export declare function resolveAndShow({ signal }: CliContext, output: Output, source: HistorySource, point: Point): Promise<ResolvedPoint>;
/** Writes the positions of a cut, such as `0:1200 1:1188 2:1201`. */
export declare function showCut(cut: Cut): string;
/** Returns a point as `--json` prints it. */
export declare function pointEntry({ point, cut, timeMs }: ResolvedPoint): Promise<unknown>;
/** Flags that choose updates. */
export interface RangeFlags {
    readonly param?: string;
    readonly trainer?: string;
    readonly since: string;
    readonly until: string;
}
/** Adds the flags that choose updates. */
export declare function addRangeOptions(command: Command): Command;
/**
 * Reads the updates that the flags choose, some at a time, after showing how their points were understood. Warns of
 * records of which nothing says what happened, and lets the command end with 1 then.
 * @throws as `parsePoint`, `resolveRange` and `readUpdates`.
 */
export declare function selectUpdates(context: CliContext, output: Output, source: HistorySource, flags: RangeFlags, how: Pick<UpdateQuery, "signal" | "follow" | "last">): Promise<AsyncGenerator<readonly UpdateEvent[]>>;
//# sourceMappingURL=with-history.d.ts.map