import { type ShardVersions, type WantedVersions } from "../../protocol/index.ts";
import type { BlockName } from "../fold/block-actor.ts";
import { type Shard } from "../fold/shard.ts";
import { type AnsweredShard } from "./pending-reads.ts";
import type { Asker, Responder } from "./responder.ts";
import type { RequestHandler } from "./subscriptions.ts";
/** Answers the requests to a shard that is served. */
export declare class ShardAnswers implements RequestHandler {
    #private;
    constructor(served: AnsweredShard, responder: Responder);
    pull(bytes: Uint8Array, asker: Asker, block: BlockName): void;
    read(bytes: Uint8Array, asker: Asker): void;
    outcome(data: Uint8Array, asker: Asker): void;
    step(data: Uint8Array, asker: Asker): void;
    ownerVerb(bytes: Uint8Array, asker: Asker, verb: string): void;
}
/** Returns the versions of the shard's blocks of each parameter under the wanted epoch. */
export declare function shardVersions(shard: Pick<Shard, "blocks">, wanted: readonly WantedVersions[]): ShardVersions[];
/** Returns the number of changes of all blocks of a shard since their `init`. */
export declare function shardUpdates(shard: Pick<Shard, "blocks">): number;
//# sourceMappingURL=answers.d.ts.map