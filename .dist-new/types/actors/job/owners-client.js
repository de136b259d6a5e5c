import { setTimeout as delay } from "node:timers/promises";
import { TimeoutError } from "@nats-io/transport-node";
import { decodeMessage, encodeMessage, integerField, knowledgeRequest, listField, PserverError, parseKnowledgeReply, parsePosition, parseTrainersReply, quoteName, TRAINERS_MAX, TRAINERS_PER_MESSAGE_MAX, textField, throwIfError, trainersRequest, } from "../../protocol/index.js";
import { fromBrokerError, isNoResponders } from "../../transport/broker-error.js";
import { mapConcurrently } from "../concurrent.js";
import { neededBytes } from "../host/host-memory.js";
import { readTakeOver, TakeOverWatch } from "../owner/take-over.js";
import { JobSpace } from "./storage-plan.js";
/** How long one request waits for a reply before it is repeated. */
const ATTEMPT_MS = 2_000;
/** How long a shard may be without an owner: longer than a lease, so that a successor can take over. */
const GRACE_MS = 20_000;
/** Grace time of a request for the memory of an owner's host. */
const MEMORY_MS = 2_000;
/** Grace time of a request for the trainers that a shard remembers; it is repeated soon. */
const TRAINERS_MS = 5_000;
/** Grace time of a request for a snapshot, which may have gigabytes. */
const SNAPSHOT_MS = 300_000;
/** Time between two requests for the same snapshot: a request may be lost, or its reply. */
const SNAPSHOT_ATTEMPT_MS = 5_000;
/** Pause before a missing owner is asked again. */
const RETRY_MS = 100;
/** Sends requests to the owners of shards, and appends host records to journals. */
export class OwnersClient {
    #deps;
    #space;
    constructor(deps) {
        const { manager, subjects, settings: limits } = deps;
        this.#deps = deps;
        this.#space = new JobSpace({ manager, subjects, limits });
    }
    /**
     * Sends a request to the owner of a shard and repeats it while no owner answers. `attemptMs` is the time
     * before a repeat, 2 s by default; requests that take an owner long need more.
     * @throws NO_OWNER if none answers in `graceMs`, 20 s by default. From that on a take-over of the shard is waited for
     * as long as it makes progress. Else the error in the reply.
     */
    async ask(shard, verb, fields, graceMs = GRACE_MS, attemptMs = ATTEMPT_MS) {
        const { connection, subjects, host } = this.#deps;
        const subject = subjects.owner(shard, host, verb);
        const payload = encodeMessage(fields);
        const takeOver = new TakeOverWatch();
        // Who gives less than the usual grace time can do without an answer.
        const awaitsTakeOver = graceMs >= GRACE_MS;
        for (let tries = 1;; tries++) {
            try {
                // Without any grace time the owner is asked once, and has the time of one request.
                const leftMs = tries === 1 ? attemptMs : Math.max(1, graceMs - takeOver.stalledMs);
                const timeout = Math.min(attemptMs, leftMs);
                const reply = await connection.request(subject, payload, { timeout });
                const message = decodeMessage(reply.data);
                throwIfError(message.fields);
                return message;
            }
            catch (error) {
                if (!isUnanswered(error) && !isMoving(error)) {
                    throw fromBrokerError(error, `asking shard ${shard}`);
                }
                const progress = error instanceof PserverError ? readTakeOver(error.details) : undefined;
                if (progress !== undefined && awaitsTakeOver)
                    takeOver.note([progress]);
                if (takeOver.stalledMs >= graceMs)
                    throw noOwner(shard, graceMs, error);
                await delay(RETRY_MS);
            }
        }
    }
    async check(shard, want) {
        const at = want.at ?? { generation: 1, seq: 0 };
        const { fields } = await this.ask(shard, "check", { ...at, blocks: want.blocks });
        const missing = listField(fields, "missing", want.blocks.length).map((row) => {
            const [parameter, index] = Array.isArray(row) ? row : [];
            const block = { parameter, index };
            return [textField(block, "parameter"), integerField(block, "index")];
        });
        return { position: parsePosition(fields), missing };
    }
    async trainers(shard) {
        const all = [];
        let toldUpTo = 0;
        // Trainers that join while pages are read can add one page.
        for (let pages = 0; pages <= TRAINERS_MAX / TRAINERS_PER_MESSAGE_MAX; pages++) {
            const request = trainersRequest(all.at(-1)?.[0] ?? "");
            const { fields } = await this.ask(shard, "trainers", request, TRAINERS_MS);
            const page = parseTrainersReply(fields);
            all.push(...page.trainers);
            toldUpTo = page.toldUpTo;
            if (page.trainers.length < TRAINERS_PER_MESSAGE_MAX)
                break;
        }
        return { trainers: all, toldUpTo };
    }
    async known(shard, graceMs) {
        const parameters = [];
        for (;;) {
            const request = knowledgeRequest(parameters.at(-1)?.name ?? "");
            const { fields } = await this.ask(shard, "known", request, graceMs);
            const { more, ...page } = parseKnowledgeReply(fields);
            parameters.push(...page.parameters);
            if (!more)
                return { ...page, parameters };
        }
    }
    append(shard, record) {
        return this.#deps.journalOf(shard).append(record);
    }
    /** Asks again for the snapshot that the first request started, finished or not, if a reply does not come. */
    async snapshot(shard, { generation, seq }) {
        const at = { generation, seq };
        const reply = await this.ask(shard, "snapshot", at, SNAPSHOT_MS, SNAPSHOT_ATTEMPT_MS);
        return reply.fields;
    }
    async reserveSpace(declared) {
        await this.#space.reserve(declared);
    }
    async checkMemory(valueBytes) {
        const added = [...valueBytes.entries()].filter(([, bytes]) => bytes > 0);
        const hosts = new Map();
        await mapConcurrently(added, async ([shard, bytes]) => {
            const owner = await this.#memoryOf(shard);
            if (owner === undefined)
                return;
            const known = hosts.get(owner.host);
            hosts.set(owner.host, {
                neededBytes: neededBytes(bytes) + (known?.neededBytes ?? 0),
                freeBytes: Math.min(owner.freeBytes, known?.freeBytes ?? Number.POSITIVE_INFINITY),
            });
        });
        for (const [host, { neededBytes: expected, freeBytes: received }] of hosts) {
            if (expected <= received)
                continue;
            throw new PserverError("NO_MEMORY", `expected ${expected} bytes of free memory for new blocks; host ${quoteName(host)} has ${received}`, { host, expected, received });
        }
    }
    /** Asks for the free memory of a shard's host; undefined if none answers. */
    async #memoryOf(shard) {
        try {
            const { fields } = await this.ask(shard, "memory", {}, MEMORY_MS, MEMORY_MS);
            return { host: textField(fields, "host"), freeBytes: integerField(fields, "freeBytes") };
        }
        catch (error) {
            if (error instanceof PserverError && error.code === "NO_OWNER")
                return undefined;
            throw error;
        }
    }
}
function noOwner(shard, graceMs, cause) {
    const isTakingOver = cause instanceof PserverError && cause.code === "NO_OWNER";
    const text = isTakingOver
        ? `${cause.message}, without progress for ${graceMs} ms`
        : `shard ${shard}: no host has answered for ${graceMs} ms; start one with "pserver host"`;
    return new PserverError("NO_OWNER", text, { shard }, { cause });
}
function isUnanswered(error) {
    return error instanceof TimeoutError || isNoResponders(error);
}
/** Answers of an owner that will be another soon. */
const MOVING = ["NOT_OWNER", "NO_OWNER", "BUSY"];
function isMoving(error) {
    return error instanceof PserverError && MOVING.includes(error.code);
}
//# sourceMappingURL=owners-client.js.map