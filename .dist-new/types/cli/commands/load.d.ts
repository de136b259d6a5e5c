import type { Command } from "commander";
import type { Client } from "../../client/client.ts";
import { type TensorSource } from "../../model-files/index.ts";
import { type ParameterConfig } from "../../protocol/config/index.ts";
import { type CliContext } from "../context.ts";
/** Options of loading a model. */
export interface LoadOptions {
    /** How each parameter of a new job is updated, by name. */
    readonly configs: ReadonlyMap<string, ParameterConfig>;
    /** Whether the values of a job that is initialized are overwritten; its configuration stays. */
    readonly overwrite: boolean;
    /** The file's metadata, which may name other names of tied weights. */
    readonly metadata: Readonly<Record<string, string>>;
    /** For the whole load; without it each call may last as long as it makes progress. */
    readonly timeoutMs?: number;
    readonly signal: AbortSignal;
    readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}
/** A model that was loaded into a job. */
export interface LoadedModel {
    readonly parameters: number;
    readonly bytes: number;
    /** Whether the job was initialized before, so that its values were overwritten. */
    readonly overwritten: boolean;
}
/** The client's calls that loading a model needs. */
export type LoadingClient = Pick<Client, "beginInit" | "initParams" | "finishInit" | "status" | "listParams" | "setParams">;
/**
 * Initializes a job with the tensors of a model, or overwrites the values of an initialized one. A tensor
 * that a save joined from sparse shards is split into them again. Memory holds a few tensors at a time.
 * @throws ALREADY_INITIALIZED if the job is ready or has parameters, and `overwrite` is false; as
 * {@link planOverwrite} before anything is overwritten; NOT_SELECTED while another trainer initializes
 * the job; what the client and the file's reader throw.
 */
export declare function loadModel(client: LoadingClient, given: readonly TensorSource[], options: LoadOptions): Promise<LoadedModel>;
/**
 * Adds the command `pserver load`, which initializes a job from a model file, or overwrites the values of an
 * initialized one.
 */
export declare function registerLoad(program: Command, context: CliContext): void;
//# sourceMappingURL=load.d.ts.map