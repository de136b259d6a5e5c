import { assign, setup, transition } from "xstate";
import { asMap, integerField, listField, PserverError, parsePosition, SHARDS_MAX, textField, } from "../../protocol/index.js";
import { ENTRY_FORMAT, readEntry } from "../journal/kv-bucket.js";
import { BucketEntry, JOB_KEY } from "./lock.js";
const machine = setup({
    types: { context: {}, events: {} },
    guards: {
        isHolder: ({ context, event }) => (event.type === "FINISH" || event.type === "ABORT") &&
            event.session === context.session &&
            event.epoch === context.epoch,
        mayReplace: ({ context, event }) => event.type === "BEGIN" &&
            (event.replace || (event.trainer === context.trainer && event.session > context.session)),
        mayAbort: ({ context, event }) => event.type === "ABORT" &&
            event.epoch === context.epoch &&
            (event.replace || event.session === context.session),
        isSomeLeft: ({ event }) => event.type === "LOSE" && event.isSomeLeft,
    },
    actions: {
        select: assign(({ context, event }) => event.type === "BEGIN"
            ? { epoch: context.epoch + 1, trainer: event.trainer, session: event.session }
            : {}),
        conclude: assign(({ event }) => event.type === "FINISH" ? { at: event.at, sealed: event.sealed } : {}),
        revise: assign(({ context }) => ({ at: [], revised: context.revised + 1 })),
    },
}).createMachine({
    id: "lifecycle",
    context: { epoch: 0, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
    initial: "uninitialized",
    states: {
        uninitialized: { on: { BEGIN: { target: "initializing", actions: "select" } } },
        initializing: {
            on: {
                BEGIN: { guard: "mayReplace", target: "initializing", reenter: true, actions: "select" },
                FINISH: { guard: "isHolder", target: "ready", actions: "conclude" },
                ABORT: { guard: "mayAbort", target: "uninitialized" },
            },
        },
        ready: {
            on: {
                LOSE: [
                    { guard: "isSomeLeft", target: "ready", reenter: true, actions: "revise" },
                    { target: "uninitialized", actions: "revise" },
                ],
            },
        },
    },
});
/** A lifecycle in which nothing has happened. */
export const UNINITIALIZED = {
    state: "uninitialized",
    context: { epoch: 0, trainer: "", session: 0, at: [], sealed: 0, revised: 0 },
};
/**
 * Returns the lifecycle after an event, without changing the given one. Returns the given one itself if its state or
 * a guard does not accept the event.
 */
export function advance(lifecycle, event) {
    const { state, context } = lifecycle;
    const before = machine.resolveState({ value: state, context });
    const [after] = transition(machine, before, event);
    return after === before ? lifecycle : { state: after.value, context: after.context };
}
/** Whether this session is selected: the one that initializes. */
export function isSelected(lifecycle, session) {
    return lifecycle.state === "initializing" && lifecycle.context.session === session;
}
const STATES = ["uninitialized", "initializing", "ready"];
/** Returns a lifecycle as its entry holds it: `{format, value, context}`, readable JSON. */
export function toLifecycleEntry(lifecycle) {
    return { format: ENTRY_FORMAT, value: lifecycle.state, context: lifecycle.context };
}
/**
 * Reads the lifecycle from an entry; {@link UNINITIALIZED} if there is none.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseLifecycleEntry(value, key) {
    if (value === undefined)
        return UNINITIALIZED;
    return readEntry(value, key, (fields) => {
        const state = STATES.find((known) => known === textField(fields, "value"));
        if (state === undefined)
            throw new PserverError("BAD_MESSAGE", "value: unknown state");
        const context = asMap(fields["context"], "context");
        const at = listField(context, "at", SHARDS_MAX).map((entry) => {
            const position = asMap(entry, "at");
            return { shard: integerField(position, "shard"), ...parsePosition(position) };
        });
        const epoch = integerField(context, "epoch", state === "uninitialized" ? 0 : 1);
        return {
            state,
            context: {
                epoch,
                trainer: textField(context, "trainer"),
                session: integerField(context, "session"),
                at,
                sealed: integerField(context, "sealed"),
                revised: integerField(context, "revised"),
            },
        };
    });
}
/** The entry of the job's lifecycle. */
export const jobEntry = new BucketEntry(JOB_KEY, (stored) => parseLifecycleEntry(stored?.value, JOB_KEY), toLifecycleEntry);
/** Makes the reply to a verb on the lifecycle of a job or of one parameter. */
export function beginReply(lifecycle, selected) {
    const { epoch, trainer } = lifecycle.context;
    return { selected, state: lifecycle.state, epoch, by: trainer };
}
//# sourceMappingURL=machine.js.map