import { LIVE_SESSIONS_MAX, PserverError } from "../../protocol/index.js";
import { TRAINER_KEYS } from "./lock.js";
/** Time for which the trainers are counted as they were listed last. */
const FRESH_MS = 1_000;
/**
 * Bounds the trainers that have an entry in the job's bucket: one id has one entry and one lease, but whoever may use
 * any id could make them without end. Counts those that join through this host exactly, and others as of at most a
 * second ago, by which the job may have more.
 */
export class JoinedTrainers {
    #deps;
    #count = 0;
    #countedAtMs = Number.NEGATIVE_INFINITY;
    #sweptAtMs = Number.NEGATIVE_INFINITY;
    #underWay;
    constructor(deps) {
        this.#deps = deps;
    }
    /**
     * Makes sure that the job has a place for a trainer that has none. `sweep` removes the entries of those whose
     * sessions have ended; it is called at most once in a lease time.
     * @throws TOO_MANY_TRAINERS if all places are taken by live trainers; the errors of `sweep` and {@link KvBucket}.
     */
    async require(sweep) {
        const { clock } = this.#deps;
        if (clock.now() - this.#countedAtMs >= FRESH_MS) {
            this.#underWay ??= this.#recount(sweep).finally(() => {
                this.#underWay = undefined;
            });
            await this.#underWay;
        }
        if (this.#count >= LIVE_SESSIONS_MAX) {
            throw new PserverError("TOO_MANY_TRAINERS", `expected at most ${LIVE_SESSIONS_MAX} trainers in the job; received one more, and all of these are alive`, { expected: LIVE_SESSIONS_MAX, received: this.#count + 1 });
        }
        this.#count += 1;
    }
    async #recount(sweep) {
        const { clock, leaseMs } = this.#deps;
        await this.#list();
        const isDue = clock.now() - this.#sweptAtMs >= leaseMs;
        if (this.#count < LIVE_SESSIONS_MAX || !isDue)
            return;
        this.#sweptAtMs = clock.now();
        await sweep();
        await this.#list();
    }
    async #list() {
        const atMs = this.#deps.clock.now();
        this.#count = (await this.#deps.bucket.keys(TRAINER_KEYS)).length;
        this.#countedAtMs = atMs;
    }
}
//# sourceMappingURL=joined-trainers.js.map