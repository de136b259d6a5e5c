import { type Fields, type Message, type ParameterInfo, PserverError, type ShardVersions, type VersionsReply, type WantedVersions } from "../../protocol/index.ts";
import type { OpenedJob } from "../job/open-job.ts";
import type { OwnersClient } from "../job/owners-client.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { SaveQuotas } from "./save-quotas.ts";
/** Asks the owner of a shard for the versions of these parameters' blocks, in their order. */
export type AskShard = (shard: number, wanted: readonly WantedVersions[]) => Promise<readonly ShardVersions[]>;
/**
 * Gathers versions of parameters from the owners of their shards, each asked once. The result is null for a parameter
 * that is not ready, and for one whose replies lack some blocks: a number of only a part of them would be wrong.
 */
export declare function gatherVersions(parameters: readonly (ParameterInfo | null)[], ask: AskShard): Promise<VersionsReply>;
/** Answers control requests of operators and trainers, which any host of the job may answer. */
export declare class ControlService {
    #private;
    constructor(job: OpenedJob, service: LifecycleService, owners: OwnersClient, saver: Saver);
    /** Returns the entries of the reply to `asker`; @throws the error that the reply is to carry. */
    handle(asker: string, verb: string, message: Message, tell: (inbox: string, entries: Fields) => void): Promise<Fields>;
}
/** A request to save the model. */
interface SaveRequest {
    /** Path below the model directory. */
    readonly path: string;
    /** Identifies the save to whoever stops or repeats it. */
    readonly token?: string;
    /** An inbox of the asker that gets the progress. */
    readonly progress?: string;
}
/** Dependencies of {@link Saver}. */
interface SaverDeps {
    readonly service: Pick<LifecycleService, "status">;
    readonly owners: OwnersClient;
    /** Where models go; without it nothing can be saved on this host. */
    readonly directory: string | undefined;
    readonly quotas: SaveQuotas;
    readonly job: string;
    /** Id of the host that writes. */
    readonly host: string;
    /** Called with errors that the operator has to correct. */
    readonly onError: (error: PserverError) => void;
}
/** Writes the model of a job into a file of this host, block by block. */
export declare class Saver {
    #private;
    constructor(deps: SaverDeps);
    /**
     * Saves every parameter that is ready under a path of the model directory. A repeat of a request with
     * a token joins the save that it repeats.
     * @throws BAD_PATH, NOT_INITIALIZED if there is nothing to save, QUOTA, DISK_FULL, IO, NO_OWNER, …; ABORTED
     * if it was stopped. Messages name paths below the model directory only.
     */
    save(asker: string, { path, token, progress }: SaveRequest, tell: (inbox: string, entries: Fields) => void): Promise<Fields>;
    /** Stops a save that this asker has begun on this host; false if there is none. */
    stop(asker: string, token: string): boolean;
}
export {};
//# sourceMappingURL=control-service.d.ts.map