import { type CallOptions } from "./calls/calls.ts";
import { Client } from "./client.ts";
import type { ShardFallback } from "./io/fallbacks.ts";
import { type ConnectionOverrides, type Environment } from "./wire/broker-settings.ts";
/** Options of `connect`; connection settings that are left out come from the environment. */
export interface ConnectOptions extends ConnectionOverrides, CallOptions {
    /** Name of the job: 1 to 40 of `A-Z a-z 0-9 -`. By default `PSERVER_JOB`, else `default`. */
    readonly job?: string;
    /**
     * Id of this trainer in the job, the same after a restart to take over what it was doing. Two
     * processes with one id end each other's sessions. By default `PSERVER_TRAINER`, else one that is used
     * once: the host name, the process id and a random part.
     */
    readonly trainer?: string;
    /**
     * Called once for each journal of a shard that was replaced with acknowledged updates undone, as after
     * `pserver recover`. Calls under way fail as for a lost journal; later calls go on from the state that is
     * left. Without this option the process emits a warning.
     */
    readonly onFallback?: (fallback: ShardFallback) => void;
}
/**
 * Connects to the broker, by two connections, and joins a job as a trainer. Tries again until `timeoutMs` (10 s) is
 * over, so that broker, host and trainers can be started in any order. Settings that are left out come
 * from `environment`; so a trainer that the launcher has started joins its job without any.
 *
 * @throws NO_BROKER, naming the address, if the broker does not answer; DENIED if it refuses the
 * credentials; NO_TLS if it offers no TLS, or none to trust, where `tls://` asks for it; NO_HOST if no host of the job answers; BAD_NAME for a wrong job or trainer.
 *
 * @example
 * const ps = await connect({ url: "nats://127.0.0.1:4222", job: "mnist" });
 * if (await ps.beginInit()) {
 *   await ps.initParam("w", { dtype: "float32", shape: [10, 784], data }, { learningRate: 0.1 });
 *   await ps.finishInit();
 * }
 * await ps.sendGrads({ w: gradient });
 * const [w] = await ps.getParams(["w"]);
 */
export declare function connect(options?: ConnectOptions, environment?: Environment): Promise<Client>;
//# sourceMappingURL=connect.d.ts.map