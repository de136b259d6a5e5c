import { ensureError, PserverError, reactionTo } from "../../protocol/errors.js";
import { parseEnterReply } from "../../protocol/messages/lifecycle-messages.js";
import { encodeStepRequest, parseStepReply, } from "../../protocol/messages/reads.js";
import { encodeClock } from "../../protocol/messages/records.js";
import { quoteName } from "../../protocol/names.js";
import { noteReplaced } from "../core/shard-window.js";
import { newStepCall, StepsCore, } from "../core/steps-core.js";
import { toError } from "./update-sender.js";
/**
 * Longest wait at the host: just shorter than the pause between repeats, so that the host never holds two
 * copies of one request.
 */
const WAIT_MS = 900;
/**
 * Waits until a shard knows the members of a revision and has closed a step; returns how far it is.
 * @throws TIMEOUT at the deadline, naming the members that are waited for.
 */
async function askForStep({ requests, subjects, trainer, positions }, wanted, deadline) {
    const { shard, revision, step } = wanted;
    while (true) {
        try {
            const reply = await requests.ask({
                subject: subjects.step(shard, trainer),
                body: () => {
                    const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
                    return encodeStepRequest({ ...positions.get(shard), revision, step: step(), waitMs });
                },
                read: parseStepReply,
                deadline,
                nobody: () => new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard }),
            });
            positions.note(shard, reply);
            return reply;
        }
        catch (caught) {
            const error = ensureError(caught);
            if (reactionTo(error.code) !== "replaced")
                throw error;
            noteReplaced(positions, shard, error);
            // If the error names no newer journal, the next request would get it again at once.
            await deadline.sleep(WAIT_MS / 10);
        }
    }
}
/** Does the I/O of the step machine, for calls with deadlines. */
export class Steps {
    #options;
    #core;
    #pending = new Map();
    #calls = 0;
    /** Exits that it has asked hosts for. */
    #exits = 0;
    constructor(options) {
        this.#options = options;
        this.#core = new StepsCore(this);
    }
    /** Steps this trainer has ended, those before it entered included. */
    get ended() {
        return this.#core.ended;
    }
    /** The step that must have closed before this trainer reads; undefined for none. */
    get readStep() {
        return this.#core.readStep;
    }
    /** Tells the step machine that a session has begun. */
    sessionBegan(session, shards, synchronization) {
        this.#core.sessionBegan(session, shards, synchronization);
    }
    /** Tells the step machine that a shard has answered a read that waited for a step. */
    noteClosed(shard, step) {
        this.#core.noteClosed(shard, step);
    }
    /** Tells the step machine that a read was refused because the trainer is no longer a member. */
    lostPlace() {
        this.#core.lostPlace();
    }
    /** Tells the step machine that a shard has fallen back. */
    fellBack(shard) {
        this.#core.fellBack(shard);
    }
    /**
     * Sends gradients to shards as part of the open step, and ends the step if `endStep` is true. After an
     * error the step is still open.
     * A trainer that has lost its place in the steps enters again, once in a call.
     * @throws what `send` throws; TIMEOUT naming members waited for; NOT_MEMBER or LATE if the step had taken a part of
     * the gradients when it closed without the trainer.
     */
    gradients(call, deadline, send) {
        return this.#run("gradients", deadline, { ...call, send });
    }
    /** Ends the open step, once its gradients are stored; see `Client.endStep`. */
    async endStep(deadline) {
        await this.#run("end", deadline);
    }
    /** Takes part in no later step; see `Client.exitSteps`. */
    async exit(deadline) {
        await this.#run("exit", deadline);
    }
    enter(call) {
        const { session } = this.#options;
        this.#relay(call, session.request("enter", { exits: this.#exits }, this.#deadline(call)), (fields) => this.#core.entered(call, parseEnterReply(fields).revision));
    }
    exitMembers(call) {
        const { session } = this.#options;
        this.#exits += 1;
        const exits = this.#exits;
        this.#relay(call, session.request("exit", { exits }, this.#deadline(call)), () => this.#core.exited(call));
    }
    askStep(call, shard, revision) {
        const wanted = { shard, revision, step: () => this.#core.wantedStep(call) };
        askForStep(this.#options, wanted, this.#deadline(call)).then(({ step }) => this.#core.stepAnswered(call, shard, step), (error) => this.#core.askFailed(call, ensureError(error)));
    }
    sendGradients(call, step, countsLate) {
        const place = { step: step === 0 ? undefined : step, countsLate };
        // Decided before anything of the step is sent: shards that have dropped the trainer would refuse a part of it.
        const isOut = step > 0 && this.#options.session.mayBeOut;
        const sending = isOut ? Promise.reject(this.#mayBeOut()) : this.#call(call).send(place);
        sending
            .then(({ late }) => this.#core.gradientsSent(call, late), (thrown) => {
            const error = ensureError(thrown);
            this.#core.gradientsFailed(call, error, takenBlocks(error));
        })
            .catch((error) => this.#core.failed(call, ensureError(error)));
    }
    sendClocks(call, step) {
        const { sender, session, subjects, trainer } = this.#options;
        const clocks = Array.from({ length: session.shards }, (_, shard) => ({
            subject: subjects.clock(shard, trainer),
            shard,
            topic: { kind: "clock", step },
            blocks: 1,
            dataBytes: 0,
            namesVersion: false,
            draft: (header) => encodeClock({ verb: "clock", ...header, step }),
        }));
        const sending = sender.send(clocks, { deadline: this.#deadline(call) });
        this.#relay(call, sending, () => this.#core.clocksSent(call));
    }
    stepCallDone(call) {
        this.#take(call).resolve({ lateBlocks: call.late });
    }
    stepCallFailed(call, failure) {
        this.#take(call).reject(toError(failure));
    }
    #run(kind, deadline, gradients) {
        const { shards = [], endStep = true, send = nothingToSend } = gradients ?? {};
        const call = newStepCall(++this.#calls, kind, shards, endStep);
        return new Promise((resolve, reject) => {
            if (deadline.ended !== undefined)
                throw deadline.ended;
            if (this.#options.session.mayBeOut)
                this.#core.lostPlace();
            const stopListening = deadline.onEnd((error) => this.#core.endCall(call, error));
            this.#pending.set(call.id, { deadline, send, stopListening, resolve, reject });
            this.#core.begin(call);
        });
    }
    #mayBeOut() {
        const { trainer } = this.#options;
        return new PserverError("NOT_MEMBER", `trainer ${quoteName(trainer)}: no host has confirmed the lease for its whole time, so the trainer may be out of the steps`, { trainer });
    }
    /** Passes the result of a call's request on to the core. */
    #relay(call, work, take) {
        work.then(take).catch((error) => this.#core.failed(call, ensureError(error)));
    }
    #deadline(call) {
        return this.#call(call).deadline;
    }
    #call(call) {
        const pending = this.#pending.get(call.id);
        if (pending === undefined)
            throw new PserverError("INTERNAL", "a step call is not under way");
        return pending;
    }
    /** Removes a call that is over, and returns it. */
    #take(call) {
        const pending = this.#call(call);
        this.#pending.delete(call.id);
        pending.stopListening();
        return pending;
    }
}
/** Counts the updates that are applied, or may be, by the error of a call that sent them. */
function takenBlocks({ details }) {
    return [details["applied"], details["unknown"]].filter(Array.isArray).flat().length;
}
function nothingToSend() {
    return Promise.resolve({ late: 0 });
}
//# sourceMappingURL=steps.js.map