import { blockPlaces, laterPosition, PserverError, parseFinishRequest, parseTarget, quoteName, SHARD_BYTES_MAX, } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { dropOrphans } from "./declared-ledger.js";
import { advance, beginReply, isSelected, jobEntry, } from "./machine.js";
import { changeParameter, effectiveState, parameterEntry, requireKnown, requireOwn, shardBytes, } from "./parameter.js";
import { isGone, requireLiveSession, requireSession } from "./sessions.js";
import { announceReady } from "./shard-comparison.js";
/**
 * Checks that this session is the one that initializes the job, or `parameter`, under this epoch.
 * @throws ALREADY_INITIALIZED if it is ready, STALE_EPOCH if another initialization has replaced
 * the claimant's or it was aborted, NOT_SELECTED in any other case.
 */
export function requireSelected(lifecycle, claimant, parameter) {
    const { state, context } = lifecycle;
    const { trainer, session, epoch } = claimant;
    if (isSelected(lifecycle, session) && epoch === context.epoch)
        return;
    const what = parameter === undefined ? "the job" : quoteName(parameter);
    const by = `trainer ${quoteName(context.trainer)}, session ${context.session}`;
    const details = {
        ...(parameter === undefined ? {} : { parameter }),
        trainer,
        expected: { trainer: context.trainer, session: context.session, epoch: context.epoch },
        received: { trainer, session, epoch },
    };
    const refusal = (code, text) => new PserverError(code, `${what}${text}`, details);
    if (state === "ready") {
        const text = ` was initialized by ${by}, in epoch ${context.epoch}`;
        throw refusal("ALREADY_INITIALIZED", text);
    }
    if (epoch < context.epoch || (epoch === context.epoch && state === "uninitialized")) {
        const ended = `: the initialization of epoch ${epoch} has ended without a finish`;
        throw refusal("STALE_EPOCH", `${ended}; the epoch is ${context.epoch}, ${state}`);
    }
    const expected = `${state === "initializing" ? by : "nobody"} in epoch ${context.epoch}`;
    const received = `trainer ${quoteName(trainer)}, session ${session}, epoch ${epoch}`;
    throw refusal("NOT_SELECTED", `: expected ${expected}; received ${received}`);
}
/** Whether this session has finished the initialization; then a repeated finish succeeds. */
function hasFinished(lifecycle, claimant) {
    const { state, context } = lifecycle;
    return (state === "ready" && context.session === claimant.session && context.epoch === claimant.epoch);
}
/** Whether the session that initializes counts as dead. */
export async function isAbandoned(deps, lifecycle) {
    return lifecycle.state === "initializing" && (await isGone(deps, lifecycle.context));
}
/** Ends the job's initialization if the selected session counts as dead, and returns the job. */
export async function abortAbandonedJob(deps) {
    const { result } = await jobEntry.change(deps, async (job) => {
        const { session, epoch } = job.context;
        const replace = await isAbandoned(deps, job);
        return replace ? advance(job, { type: "ABORT", session, epoch, replace }) : job;
    });
    return result;
}
/**
 * Selects this session to initialize the job, unless another session initializes it or has. The selected session
 * stays selected however often it asks. A newer session of the same trainer takes its place under the next epoch, and
 * so does any session once the selected one is gone.
 * @throws JOB_DAMAGED if a shard knows that the job was initialized; the error of an owner that cannot say.
 */
export async function begin(deps, trainer, fields) {
    const session = await requireLiveSession(deps, trainer, fields);
    const { result: job } = await jobEntry.change(deps, async (current) => {
        if (isSelected(current, session))
            return current;
        const replace = await isAbandoned(deps, current);
        const selected = advance(current, { type: "BEGIN", trainer, session, replace });
        // A job that the shards know as initialized must not be initialized again.
        if (selected !== current)
            await deps.comparison.requireAll();
        return selected;
    });
    return { ...beginReply(job, isSelected(job, session)) };
}
/** Aborts an initialization, of the job or of one parameter. What is ready stays ready. */
export async function abort(deps, trainer, fields) {
    const session = await requireSession(deps, trainer, fields);
    const { epoch, parameter } = parseTarget(fields);
    const claimant = { trainer, session, epoch };
    const end = (lifecycle) => {
        const { state, context } = lifecycle;
        const isOver = state === "ready" || (state === "uninitialized" && context.epoch === epoch);
        if (isOver)
            return lifecycle;
        requireSelected(lifecycle, claimant, parameter);
        return advance(lifecycle, { type: "ABORT", session, epoch, replace: false });
    };
    const aborted = parameter === undefined
        ? (await jobEntry.change(deps, end)).result
        : await abortParameter(deps, parameter, end);
    return { ...beginReply(aborted, false) };
}
async function abortParameter(deps, name, end) {
    const parameter = await changeParameter(deps, name, (found) => {
        const known = requireOwn(requireKnown(found, name));
        const lifecycle = end(known.lifecycle);
        return lifecycle === known.lifecycle ? known : { ...known, lifecycle };
    });
    return parameter.lifecycle;
}
/** Blocks per request: their names fit into the smallest payload that a broker may have. */
const BLOCKS_PER_CHECK = 1000;
const MISSING_NAMED_MAX = 20;
/**
 * Asks the owners for every block of some parameters, at the epochs under which they are declared.
 * @returns the ends of the journals, as each owner folded its journal for the check, in order of shards: of all
 * `shards`, and of those that hold the blocks.
 * @throws INCOMPLETE naming the blocks that are missing, BAD_VALUE for a shard that does not exist.
 */
async function requireBlocks(deps, parameters, published, shards) {
    const publishedAt = lastPublished(deps, published);
    const wanted = blocksByShard(parameters, shards);
    const checks = await mapConcurrently([...wanted], ([shard, blocks]) => checkShard(deps, shard, blocks, publishedAt.get(shard)));
    const missing = checks.flatMap((check) => check.missing);
    if (missing.length > 0)
        throw incomplete(missing, parameters);
    return checks
        .map(({ shard, position }) => ({ shard, generation: 1, seq: 0, ...position }))
        .sort((a, b) => a.shard - b.shard);
}
/** Returns the names of those parameters that lack blocks on a shard. */
async function lackingOn(deps, parameters, shard) {
    const blocks = blocksByShard(parameters, []).get(shard) ?? [];
    const { missing } = await checkShard(deps, shard, blocks, undefined);
    return new Set(missing.map(([name]) => name));
}
/** Asks the owner of a shard for blocks; returns those that it lacks, and the end of its journal. */
async function checkShard(deps, shard, blocks, at) {
    let position = at;
    const missing = [];
    // Each shard is asked once at least, for the end of its journal.
    for (let from = 0; from === 0 || from < blocks.length; from += BLOCKS_PER_CHECK) {
        const batch = blocks.slice(from, from + BLOCKS_PER_CHECK);
        const answer = await deps.owners.check(shard, {
            blocks: batch,
            ...(at === undefined ? {} : { at }),
        });
        position = laterPosition(position, answer.position);
        missing.push(...answer.missing);
    }
    return { shard, position, missing };
}
/**
 * Checks that shards and broker can hold the parameters.
 * @throws TOO_LARGE naming the first shard that cannot, NO_SPACE if the broker cannot.
 */
async function requireStorage(deps, parameters) {
    const bytes = shardBytes(parameters, deps.job);
    const shard = bytes.findIndex((held) => held > SHARD_BYTES_MAX);
    if (shard >= 0) {
        throw new PserverError("TOO_LARGE", `shard ${shard}: ${bytes[shard]} bytes of values and slots are declared; a shard holds at most ${SHARD_BYTES_MAX}`, { shard, expected: SHARD_BYTES_MAX, received: bytes[shard] });
    }
    // Hosts that have declared at the same time did not know of each other.
    await deps.owners.reserveSpace(deps.ledger.totalWith(parameters));
}
/**
 * Checks that the hosts can hold new parameters, as far as can be known before their values are sent.
 * @throws NO_MEMORY naming the host that cannot.
 */
export async function requireMemory(deps, parameters) {
    if (parameters.length > 0)
        await deps.owners.checkMemory(shardBytes(parameters, deps.job));
}
function blocksByShard(parameters, shards) {
    const wanted = new Map(shards.map((shard) => [shard, []]));
    for (const { declaration, layout, lifecycle } of parameters) {
        for (const { shard, index } of blockPlaces(layout)) {
            const block = [declaration.name, index, lifecycle.context.epoch];
            const blocks = wanted.get(shard);
            if (blocks === undefined)
                wanted.set(shard, [block]);
            else
                blocks.push(block);
        }
    }
    return wanted;
}
function lastPublished(deps, published) {
    const last = new Map();
    for (const { shard, ...position } of published) {
        if (shard >= deps.job.shards) {
            throw new PserverError("BAD_VALUE", `at: expected shards 0 to ${deps.job.shards - 1}; received ${shard}`, { expected: deps.job.shards, received: shard });
        }
        last.set(shard, laterPosition(last.get(shard), position));
    }
    return last;
}
function incomplete(missing, parameters) {
    const declared = parameters.reduce((sum, { layout }) => sum + layout.blocks, 0);
    const named = missing.slice(0, MISSING_NAMED_MAX);
    const list = named.map(([name, index]) => `${quoteName(name)} block ${index}`).join(", ");
    const rest = missing.length > named.length ? " …" : "";
    return new PserverError("INCOMPLETE", `expected ${declared} initialized blocks; ${missing.length} are missing: ${list}${rest}`, { expected: declared, missing: missing.length, blocks: named });
}
/**
 * Finishes an initialization, of the job or of one parameter, once every declared block exists; if the journals are
 * in memory, once a snapshot holds them. The journals are told, too, before the trainer is. Replies with the ends of the journals. A repeat by the session that finished
 * gets the same reply.
 */
export async function finish(deps, trainer, fields) {
    const request = parseFinishRequest(fields);
    const session = await requireSession(deps, trainer, fields);
    const claimant = { trainer, session, epoch: request.epoch };
    const { parameter } = request;
    const finished = parameter === undefined
        ? await finishJob(deps, claimant, request)
        : await finishParameter(deps, claimant, request, parameter);
    const { epoch, at } = finished.context;
    return { state: finished.state, epoch, at };
}
async function finishJob(deps, claimant, request) {
    // A declaration that is written after this revision of the job does not count, however late it comes.
    const { result: seen, revision: sealed } = await jobEntry.change(deps, (job) => hasFinished(job, claimant) ? job : { ...requireClaimant(job, claimant) });
    await deps.ledger.catalog.refresh();
    const parameters = deps.ledger.catalog.all();
    const job = hasFinished(seen, claimant)
        ? seen
        : await concludeJob(deps, claimant, request, parameters, sealed);
    await announceReady(deps, { job });
    await dropOrphans(deps, parameters, job);
    return job;
}
async function concludeJob(deps, claimant, request, parameters, sealed) {
    const declared = parameters.filter(({ jobEpoch, revision }) => jobEpoch === claimant.epoch && revision < sealed);
    if (declared.length === 0) {
        throw new PserverError("EMPTY", `finish: no parameter has been declared in epoch ${claimant.epoch} of the job`, { trainer: claimant.trainer, epoch: claimant.epoch });
    }
    const own = parameters.filter(({ jobEpoch, lifecycle }) => {
        return jobEpoch === 0 && lifecycle.state === "ready";
    });
    const shards = Array.from({ length: deps.job.shards }, (_, shard) => shard);
    await requireStorage(deps, [...declared, ...own]);
    const at = await requireBlocks(deps, declared, request.at, shards);
    await storeInitialized(deps, at);
    const conclusion = { type: "FINISH", ...claimant, at, sealed };
    const { result } = await jobEntry.change(deps, (job) => advance(requireClaimant(job, claimant), conclusion));
    return result;
}
async function finishParameter(deps, claimant, request, name) {
    const admit = (found) => {
        const known = requireOwn(requireKnown(found, name));
        requireClaimant(known.lifecycle, claimant, name);
        return known;
    };
    const known = admit(await parameterEntry(name).read(deps));
    let { lifecycle } = known;
    if (!hasFinished(lifecycle, claimant)) {
        await requireStorage(deps, [known]);
        const at = await requireBlocks(deps, [known], request.at, []);
        await storeInitialized(deps, at);
        const conclusion = { type: "FINISH", ...claimant, at, sealed: 0 };
        const finished = await changeParameter(deps, name, (found) => {
            const current = admit(found);
            const after = advance(current.lifecycle, conclusion);
            return after === current.lifecycle ? current : { ...current, lifecycle: after };
        });
        deps.ledger.catalog.note([finished]);
        lifecycle = finished.lifecycle;
    }
    await announceReady(deps, { parameter: { ...known, lifecycle } });
    await dropOrphans(deps, [{ ...known, lifecycle }], await jobEntry.read(deps));
    return lifecycle;
}
/**
 * Has the shards store what was initialized, if only a journal in memory holds it: the entry which says that it is
 * initialized lies on file, and must not outlive the blocks.
 */
async function storeInitialized({ job, owners }, at) {
    if (job.journal !== "memory")
        return;
    await mapConcurrently(at, ({ shard, ...position }) => owners.snapshot(shard, position), at.length);
}
/** Returns the lifecycle if the claimant initializes it or has finished it; @throws as {@link requireSelected}. */
function requireClaimant(lifecycle, claimant, parameter) {
    if (!hasFinished(lifecycle, claimant))
        requireSelected(lifecycle, claimant, parameter);
    return lifecycle;
}
/**
 * Makes parameters that a shard has lost initializable again. Their entries lie on file and say that they are
 * initialized, but the shard, which is served, lacks blocks of them: its journal was in memory. If no parameter is
 * left, the whole job is to be initialized again; if some are left, it stays initialized, and the lost ones can be
 * created one by one. A repeat changes nothing.
 *
 * Call it only for a job with journals in memory: a shard on file that lacks blocks is stopped, and an operator may
 * get them back.
 */
export async function takeBackLost(deps, shard) {
    const { catalog } = deps.ledger;
    await catalog.refresh();
    const job = await jobEntry.read(deps);
    const ready = catalog.all().filter((each) => effectiveState(each, job) === "ready");
    const lacking = await lackingOn(deps, ready, shard);
    const lost = ready.filter(({ declaration }) => lacking.has(declaration.name));
    const changed = await mapConcurrently(lost, (parameter) => takeBack(deps, parameter));
    const parameters = changed.flatMap((name) => name ?? []).sort();
    const isJob = await reviseJob(deps, parameters.length > 0);
    return { parameters, isJob };
}
/**
 * Makes one parameter initializable again. Returns its name, or undefined if its entry has changed since it was read.
 */
async function takeBack(deps, parameter) {
    const { name } = parameter.declaration;
    // A parameter that was declared for the job has become ready with it; its own entry does not say so.
    const ready = { ...parameter.lifecycle, state: "ready" };
    const lifecycle = advance(ready, { type: "LOSE", isSomeLeft: false });
    const taken = { ...parameter, jobEpoch: 0, lifecycle };
    const now = await changeParameter(deps, name, (known) => {
        return known === undefined || known.revision === parameter.revision ? taken : known;
    });
    deps.ledger.catalog.note([now]);
    return now.lifecycle.state === "uninitialized" ? name : undefined;
}
/**
 * Tells other hosts, by the job's entry, that parameters which they know as ready have changed; if none is left, ends
 * the job's initialization. Returns whether it has ended that.
 */
async function reviseJob(deps, hasChanged) {
    const { catalog } = deps.ledger;
    let isJob = false;
    await jobEntry.change(deps, async (job) => {
        isJob = false;
        if (job.state !== "ready")
            return job;
        await catalog.refresh();
        const isSomeLeft = catalog.all().some((each) => effectiveState(each, job) === "ready");
        if (isSomeLeft && !hasChanged)
            return job;
        isJob = !isSomeLeft;
        return advance(job, { type: "LOSE", isSomeLeft });
    });
    return isJob;
}
//# sourceMappingURL=initialization.js.map