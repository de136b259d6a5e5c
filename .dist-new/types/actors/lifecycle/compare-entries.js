import { isDeepStrictEqual } from "node:util";
import { JOB_KEY, MEMBERS_KEY, parameterKey, SESSION_KEY, SWEPT_KEY } from "./lock.js";
import { effectiveState } from "./parameter.js";
/** Returns the entries that contradict what a shard knows. */
export function contradictions(entries, shard, known) {
    const knows = (what) => `shard ${shard} knows ${what}`;
    const problems = [];
    const check = (key, isSound, problem) => {
        if (!isSound)
            problems.push({ key, problem: problem() });
    };
    const { job } = entries;
    check(JOB_KEY, isJobSound(job, known), () => {
        const { epoch, revised } = { epoch: 0, revised: 0, ...known.job };
        const expected = `that the job was initialized in epoch ${epoch}, revised ${revised} times`;
        return `${knows(expected)}; found ${describe(job)}`;
    });
    const session = Math.max(known.sweptUpTo, known.job?.session ?? 0);
    check(SESSION_KEY, entries.given >= session, () => {
        return `${knows(`that session ${session} was given`)}; found session ${entries.given}`;
    });
    check(SWEPT_KEY, entries.swept >= known.sweptUpTo, () => {
        return `${knows(`of a sweep up to session ${known.sweptUpTo}`)}; found ${entries.swept}`;
    });
    check(MEMBERS_KEY, entries.membersRevision >= known.members.revision, () => {
        const { revision } = known.members;
        return `${knows(`the members of revision ${revision}`)}; found revision ${entries.membersRevision}`;
    });
    // A rewind may have given parameters lower epochs since the shard was told of the job.
    const isCurrent = (known.job?.revised ?? 0) === job.context.revised;
    for (const declared of known.parameters) {
        const problem = parameterProblem(entries, declared, isCurrent);
        if (problem === undefined)
            continue;
        const what = `the parameter under epoch ${declared.epoch}`;
        problems.push({ key: parameterKey(declared.name), problem: `${knows(what)}; ${problem}` });
    }
    return problems;
}
/** Whether the job's entry says at least that the job was initialized as the shard knows. */
function isJobSound({ state, context }, { job }) {
    if (job === undefined || context.revised > job.revised)
        return true;
    return context.revised === job.revised && context.epoch === job.epoch && state === "ready";
}
/** Returns what is wrong with the entry of a declared parameter; undefined if nothing is. */
function parameterProblem({ job, parameter }, declared, isCurrent) {
    const entry = parameter(declared.name);
    if (entry === undefined)
        return "found no entry";
    const { lifecycle, layout, firstNumber } = entry;
    const { epoch, trainer, revised } = lifecycle.context;
    if (!isCurrent || epoch > declared.epoch)
        return undefined;
    if (epoch < declared.epoch)
        return `found epoch ${epoch}`;
    const { name, dtype, shape, config } = declared;
    const placed = { layout: declared.layout, firstNumber: declared.firstNumber };
    const wanted = { declaration: { name, dtype, shape, config }, ...placed };
    if (!isDeepStrictEqual(wanted, { declaration: entry.declaration, layout, firstNumber })) {
        return "found another declaration under the same epoch";
    }
    if (trainer !== declared.trainer)
        return `expected trainer ${declared.trainer}; found ${trainer}`;
    if (declared.initialized !== true || effectiveState(entry, job) === "ready")
        return undefined;
    // What a shard with its journal in memory has lost is taken back under the same epoch.
    const isTakenBack = lifecycle.state === "uninitialized" && revised > 0;
    return isTakenBack ? undefined : `expected it to be initialized; found ${lifecycle.state}`;
}
function describe({ state, context: { epoch, revised } }) {
    return `${state}, epoch ${epoch}, revised ${revised} times`;
}
//# sourceMappingURL=compare-entries.js.map