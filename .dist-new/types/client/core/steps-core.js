import { reactionTo, reactionToRejection } from "../../protocol/errors.js";
/**
 * A trainer's part in the steps of a `sync` or `ssp` job. The trainer enters at its first gradient, in the
 * step after the last one that any shard has closed.
 *
 * Calls have their turns in the order in which they came. A call keeps its turn until it is over, except that
 * gradients which do not end the step give it up as soon as they are under way.
 */
export class StepsCore {
    #commands;
    #queue = [];
    #holder;
    #isGivingTurns = false;
    /** Number of calls whose gradients are under way. */
    #sending = 0;
    /** By shard: the last step known to be closed. */
    #closed = [];
    #synchronization = { mode: "async" };
    #shards = 0;
    #session = 0;
    /**
     * Revision of the members since which this trainer is one, and the session in which it is; 0 if it is not.
     */
    #memberRevision = 0;
    #memberSession = 0;
    #ended = 0;
    /** Whether a gradient of the step after the last ended one has been sent. */
    #isOpen = false;
    #enteredInStep = false;
    constructor(commands) {
        this.#commands = commands;
    }
    /** Steps this trainer has ended, those before it entered included. */
    get ended() {
        return this.#ended;
    }
    /** The step that must have closed before this trainer reads; undefined for none. */
    get readStep() {
        const synchronization = this.#synchronization;
        if (synchronization.mode === "async" || !this.#isMember)
            return undefined;
        const staleness = synchronization.mode === "ssp" ? synchronization.staleness : 0;
        return this.#ended > staleness ? this.#ended - staleness : undefined;
    }
    /** Notes that a session has begun, in which the trainer is not a member yet. */
    sessionBegan(session, shards, synchronization) {
        this.#session = session;
        this.#shards = shards;
        this.#synchronization = synchronization;
    }
    /** Notes that a shard has closed a step. */
    noteClosed(shard, step) {
        this.#closed[shard] = Math.max(step, this.#closed[shard] ?? 0);
    }
    /**
     * Notes that a shard has fallen back: steps that had closed there may be open again, and close only when
     * this trainer tells the shard again which steps it has ended. So the trainer enters again at its next
     * gradient; until then its reads wait for no step.
     */
    fellBack(shard) {
        this.#closed[shard] = 0;
        this.#leaveMembers();
    }
    /**
     * Notes that a read was refused because the trainer is no longer a member, or was made one again without
     * its knowledge. It enters at its next gradient; until then its reads wait for no step.
     */
    lostPlace() {
        this.#leaveMembers();
    }
    /** Begins a call. If it fails, the step that it was to end is still open. */
    begin(call) {
        if (this.#synchronization.mode !== "async") {
            this.#queue.push(call);
            this.#nextTurn();
        }
        else if (call.kind === "gradients") {
            call.phase = "sending";
            this.#commands.sendGradients(call, 0, false);
        }
        else {
            this.#done(call);
        }
    }
    /**
     * Ends a call at its deadline, or because its caller has aborted it. The requests of the I/O layer for it
     * fail by themselves.
     */
    endCall(call, failure) {
        if (call.phase === "queued") {
            this.#queue.splice(this.#queue.indexOf(call), 1);
            this.failed(call, failure);
        }
        else if (call.phase === "draining") {
            this.failed(call, failure);
        }
    }
    /** Notes that the trainer is a member from this revision on. */
    entered(call, revision) {
        call.phase = "arriving";
        call.revision = revision;
        call.session = this.#session;
        this.#ask(call, Array.from({ length: this.#shards }, (_, shard) => shard));
    }
    /** Notes that the trainer is no longer a member. */
    exited(call) {
        this.#leaveMembers();
        this.#done(call);
    }
    /** Returns the step to wait for in a request that is about to be published. */
    wantedStep(call) {
        // After a fallback nobody closes the step before this trainer has entered again.
        return call.phase === "opening" && this.#isMember ? call.step : 0;
    }
    /** Notes that a shard knows the members and has closed this step. */
    stepAnswered(call, shard, step) {
        this.noteClosed(shard, step);
        call.least = Math.min(call.least, step);
        call.most = Math.max(call.most, step);
        this.#noteAnswer(call);
    }
    /** Takes the failure of a request to a shard. */
    askFailed(call, failure) {
        call.failure ??= failure;
        this.#noteAnswer(call);
    }
    /**
     * Notes that the gradients of a call have been applied, or stored if that is enough; `late` of them came
     * too late.
     */
    gradientsSent(call, late) {
        call.late = late;
        // Other trainers are ahead: the next gradient looks for their step.
        if (late > 0)
            this.#closed.length = 0;
        if (call.isSending && call.endsStep) {
            this.#stopSending(call);
            this.#drain(call);
        }
        else {
            this.#done(call);
        }
    }
    /** Notes that the clocks of `call.step` have been applied in every shard. */
    clocksSent(call) {
        if (call.phase === "catching-up") {
            this.#becomeMember(call);
            return;
        }
        this.#ended = call.step;
        if (call.phase === "skipping") {
            this.#enter(call);
            return;
        }
        this.#isOpen = false;
        this.#enteredInStep = false;
        this.#done(call);
    }
    /** Takes the failure of the gradients of a call, of which `taken` blocks are applied or may be. */
    gradientsFailed(call, failure, taken) {
        const isEarly = reactionToRejection(failure.code) === "resend-in-step";
        if (isEarly && call.isSending && !call.isResent) {
            // A shard has fallen back to an older step without this trainer's knowledge. The gradients are sent
            // again; shards that have taken them already count them as late.
            call.isResent = true;
            this.#enterAnew(call);
            return;
        }
        call.isTaken ||= taken > 0;
        // In a job that leaves out no member's gradients, a step closes without this trainer only if the trainer
        // is not a member.
        const isLate = reactionToRejection(failure.code) === "count-late";
        if (isLate)
            this.#losePlace(call, failure);
        else
            this.failed(call, failure);
    }
    /** Takes the failure of a command. */
    failed(call, failure) {
        if (reactionTo(failure.code) === "enter-anew")
            this.#losePlace(call, failure);
        else
            this.#fail(call, failure);
    }
    #losePlace(call, failure) {
        if (call.kind === "exit" || call.placeLost !== undefined) {
            this.#leaveMembers();
            this.#fail(call, failure);
        }
        else {
            // A trainer that was paused is no member any more. What it has not sent yet, or no shard has taken, goes into
            // the step in which it enters again.
            call.placeLost = failure;
            if (call.phase === "ending")
                call.ends = call.step;
            this.#enterAnew(call);
        }
    }
    #enterAnew(call) {
        this.#leaveMembers();
        this.#closed.length = 0;
        this.#enter(call);
    }
    #fail(call, failure) {
        this.#finish(call);
        this.#commands.stepCallFailed(call, failure);
        this.#nextTurn();
    }
    get #isMember() {
        return this.#memberSession !== 0 && this.#memberSession === this.#session;
    }
    #leaveMembers() {
        this.#memberRevision = 0;
        this.#memberSession = 0;
    }
    /** Gives the turn to the next call. In a loop: each may give it up at once. */
    #nextTurn() {
        if (this.#isGivingTurns)
            return;
        this.#isGivingTurns = true;
        while (this.#holder === undefined) {
            const call = this.#queue.shift();
            if (call === undefined)
                break;
            this.#holder = call;
            if (call.kind === "exit")
                this.#drain(call);
            else
                this.#enter(call);
        }
        this.#isGivingTurns = false;
    }
    /**
     * Makes the trainer a member, unless it is one in this session, and brings it up to the largest closed
     * step.
     */
    #enter(call) {
        if (this.#isMember) {
            this.#arrive(call);
            return;
        }
        call.phase = "entering";
        this.#commands.enter(call);
    }
    #becomeMember(call) {
        this.#memberRevision = call.revision;
        this.#memberSession = call.session;
        this.#enteredInStep = true;
        this.#arrive(call);
    }
    #arrive(call) {
        if (call.ends > 0 && this.#ended >= call.ends)
            this.#done(call);
        else if (call.kind === "end" || call.ends > 0)
            this.#drain(call);
        else if (this.#synchronization.mode === "sync")
            this.#openStep(call);
        else
            this.#send(call);
    }
    /** Waits until the step before the open one has closed in the shards of the gradients. */
    #openStep(call) {
        const step = this.#ended;
        const behind = call.shards.filter((shard) => (this.#closed[shard] ?? 0) < step);
        if (behind.length === 0) {
            this.#send(call);
            return;
        }
        call.phase = "opening";
        call.step = step;
        call.revision = this.#memberRevision;
        this.#ask(call, behind);
    }
    #ask(call, shards) {
        call.missing = shards.length;
        call.least = Number.POSITIVE_INFINITY;
        call.most = 0;
        call.failure = undefined;
        for (const shard of shards)
            this.#commands.askStep(call, shard, call.revision);
    }
    #noteAnswer(call) {
        call.missing -= 1;
        if (call.missing > 0)
            return;
        if (call.failure !== undefined)
            this.failed(call, call.failure);
        else if (call.phase === "arriving")
            this.#catchUp(call);
        else
            this.#leaveBehind(call);
    }
    /**
     * Tells shards that were behind the largest closed step that the trainer has ended as much. Steps that it
     * ended in an earlier membership stay ended.
     */
    #catchUp(call) {
        if (call.most > this.#ended)
            this.#isOpen = false;
        this.#ended = Math.max(this.#ended, call.most);
        if (call.least < this.#ended)
            this.#sendClocks(call, "catching-up", this.#ended);
        else
            this.#becomeMember(call);
    }
    /**
     * Ends the steps that have closed without this trainer, as they can with backups: gradients for them would
     * come too late.
     */
    #leaveBehind(call) {
        if (!this.#isMember)
            this.#enter(call);
        else if (this.#isOpen || call.most <= call.step)
            this.#send(call);
        else
            this.#sendClocks(call, "skipping", call.most);
    }
    #send(call) {
        const synchronization = this.#synchronization;
        const backups = synchronization.mode === "sync" ? synchronization.backups : 0;
        const step = synchronization.mode === "sync" ? this.#ended + 1 : 0;
        if (call.placeLost !== undefined && call.isTaken && step !== call.sentIn) {
            // In another step, what was taken would count twice.
            this.#fail(call, call.placeLost);
            return;
        }
        call.phase = "sending";
        call.sentIn = step;
        if (!call.isSending)
            this.#sending += 1;
        call.isSending = true;
        this.#isOpen = true;
        this.#commands.sendGradients(call, step, backups > 0 || this.#enteredInStep);
        if (!call.endsStep)
            this.#giveUpTurn(call);
    }
    /**
     * Waits for the gradients of other calls: a shard must have the gradients of a step before it is told that
     * no more will come.
     */
    #drain(call) {
        if (this.#sending > 0) {
            call.phase = "draining";
        }
        else if (call.kind === "exit") {
            call.phase = "exiting";
            this.#commands.exitMembers(call);
        }
        else {
            this.#sendClocks(call, "ending", this.#ended + 1);
        }
    }
    #sendClocks(call, phase, step) {
        call.phase = phase;
        call.step = step;
        this.#commands.sendClocks(call, step);
    }
    #done(call) {
        this.#finish(call);
        this.#commands.stepCallDone(call);
        this.#nextTurn();
    }
    #finish(call) {
        call.phase = "over";
        this.#stopSending(call);
        if (this.#holder === call)
            this.#holder = undefined;
    }
    #giveUpTurn(call) {
        if (this.#holder !== call)
            return;
        this.#holder = undefined;
        this.#nextTurn();
    }
    #stopSending(call) {
        if (!call.isSending)
            return;
        call.isSending = false;
        this.#sending -= 1;
        if (this.#holder?.phase === "draining")
            this.#drain(this.#holder);
    }
}
/** Makes a call that has not begun. */
export function newStepCall(id, kind, shards = [], endsStep = true) {
    return {
        id,
        kind,
        shards: [...new Set(shards)],
        endsStep,
        phase: "queued",
        isSending: false,
        isResent: false,
        placeLost: undefined,
        sentIn: 0,
        isTaken: false,
        ends: 0,
        late: 0,
        revision: 0,
        session: 0,
        step: 0,
        missing: 0,
        least: 0,
        most: 0,
        failure: undefined,
    };
}
//# sourceMappingURL=steps-core.js.map