// The step machine as a machine of scripts, and a player that raises every event that an I/O layer can raise.

import {
  newStepCall,
  type StepCall,
  type StepCallKind,
  type StepsCommands,
  StepsCore,
} from "../../../src/client/core/steps-core.ts";
import type { Failure } from "../../../src/client/core/update-call.ts";

import type { Synchronization } from "../../../src/protocol/config/index.ts";
import type { Random } from "../../simulation/random.ts";
import { failureOf } from "./outbox-script.ts";
import { type Machine, type Player, pickWord, type Recorder, toLine } from "./script.ts";

const SHARDS = 3;

/** The step machine, given events as lines. Settings: `steps <mode> <backups or staleness>`. */
export class StepsMachine implements Machine, StepsCommands {
  readonly #recorder: Recorder;
  readonly #steps: StepsCore;
  readonly #synchronization: Synchronization;
  readonly #calls = new Map<number, StepCall>();

  constructor(settings: string, recorder: Recorder) {
    const [, mode, bound] = settings.split(" ");
    this.#recorder = recorder;
    this.#steps = new StepsCore(this);
    this.#synchronization = synchronizationOf(mode ?? "", Number(bound));
  }

  take(event: string): void {
    const [verb = "", ...words] = event.split(" ");
    const [a = 0, b = 0, c = 0] = words.map(Number);
    switch (verb) {
      case "session-began":
        this.#steps.sessionBegan(a, SHARDS, this.#synchronization);
        break;
      case "begin":
        this.#begin(words);
        break;
      case "end":
        this.#steps.endCall(this.#call(a), failureOf(words[1] ?? ""));
        break;
      case "entered":
        this.#steps.entered(this.#call(a), b);
        break;
      case "exited":
        this.#steps.exited(this.#call(a));
        break;
      case "step-answered":
        this.#steps.stepAnswered(this.#call(a), b, c);
        break;
      case "ask-failed":
        this.#steps.askFailed(this.#call(a), failureOf(words[1] ?? ""));
        break;
      case "gradients-sent":
        this.#steps.gradientsSent(this.#call(a), b);
        break;
      case "gradients-failed":
        this.#steps.gradientsFailed(this.#call(a), failureOf(words[1] ?? ""), c);
        break;
      case "clocks-sent":
        this.#steps.clocksSent(this.#call(a));
        break;
      case "failed":
        this.#steps.failed(this.#call(a), failureOf(words[1] ?? ""));
        break;
      case "note-closed":
        this.#steps.noteClosed(a, b);
        break;
      case "fell-back":
        this.#steps.fellBack(a);
        break;
      default:
        throw new Error(`no event: ${event}`);
    }
    this.#recorder.command("state", this.#steps.ended, this.#steps.readStep ?? -1);
  }

  enter(call: StepCall): void {
    this.#recorder.command("enter", call.id);
  }

  exitMembers(call: StepCall): void {
    this.#recorder.command("exit", call.id);
  }

  askStep(call: StepCall, shard: number, revision: number): void {
    this.#recorder.command("ask-step", call.id, shard, revision, this.#steps.wantedStep(call));
  }

  sendGradients(call: StepCall, step: number, countsLate: boolean): void {
    this.#recorder.command("send-gradients", call.id, step, countsLate);
  }

  sendClocks(call: StepCall, step: number): void {
    this.#recorder.command("send-clocks", call.id, step);
  }

  stepCallDone(call: StepCall): void {
    this.#recorder.command("done", call.id, call.late);
  }

  stepCallFailed(call: StepCall, { code }: Failure): void {
    this.#recorder.command("call-failed", call.id, code);
  }

  #begin(words: readonly string[]): void {
    const [id = 0, , endsStep] = words.map(Number);
    const call = newStepCall(id, toKind(words[1]), words.slice(3).map(Number), endsStep === 1);
    this.#calls.set(id, call);
    this.#steps.begin(call);
  }

  #call(id: number): StepCall {
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error(`no call ${id}`);
    return call;
  }
}

function toKind(word: string | undefined): StepCallKind {
  return word === "exit" || word === "end" ? word : "gradients";
}

function synchronizationOf(mode: string, bound: number): Synchronization {
  if (mode === "sync") return { mode, trainers: 2, backups: bound, reduce: "mean" };
  return mode === "ssp" ? { mode, trainers: 2, staleness: bound } : { mode: "async" };
}

const ERRORS = { NOT_MEMBER: 3, TIMEOUT: 2, EARLY: 1, NON_FINITE: 1, NO_HOST: 1 } as const;
const GRADIENT_ERRORS = { EARLY: 4, NOT_MEMBER: 2, LATE: 1, TIMEOUT: 2 } as const;

/** What a call waits for of its I/O layer: a word for each thing asked. */
type Waiting = "enter" | "exit" | "gradients" | "clocks" | number;

/** Plays I/O layer and hosts to a step machine, by chance alone. */
export class StepsPlayer implements Player {
  readonly settings: string;
  readonly #random: Random;
  readonly #waiting = new Map<number, Waiting[]>();
  readonly #begun = new Set<number>();
  #calls = 0;
  #session = 0;
  #revision = 0;
  #closed = 0;

  constructor(random: Random) {
    this.#random = random;
    const modes = ["sync 0", "sync 0", "sync 1", "ssp 0", "ssp 2", "async 0"];
    this.settings = `steps ${random.pick(modes)}`;
  }

  next(): string | undefined {
    if (this.#session === 0) return this.#beginSession();
    const events: Readonly<Record<string, () => string | undefined>> = {
      begin: () => this.#begin(),
      answer: () => this.#answer(),
      end: () => this.#end(),
      session: () => this.#beginSession(),
      closed: () => toLine(["note-closed", this.#random.below(SHARDS), this.#closed]),
      "fell-back": () => this.#fellBack(),
    };
    const weights = { begin: 12, answer: 60, end: 2, session: 1, closed: 2, "fell-back": 4 };
    return events[pickWord(this.#random, weights)]?.();
  }

  onCommand(command: string): undefined {
    const [verb = "", ...words] = command.split(" ");
    const [id = 0, shard = 0] = words.map(Number);
    const waiting = this.#waiting.get(id) ?? [];
    if (verb === "enter" || verb === "exit") waiting.push(verb);
    if (verb === "ask-step") waiting.push(shard);
    if (verb === "send-gradients") waiting.push("gradients");
    if (verb === "send-clocks") waiting.push("clocks");
    if (verb !== "state") this.#waiting.set(id, waiting);
    if (verb === "done" || verb === "call-failed") {
      this.#waiting.delete(id);
      this.#begun.delete(id);
    }
  }

  #beginSession(): string {
    this.#session += 1;
    return toLine(["session-began", this.#session]);
  }

  #begin(): string | undefined {
    if (this.#begun.size >= 5) return undefined;
    const id = ++this.#calls;
    this.#begun.add(id);
    const kind = pickWord(this.#random, { gradients: 8, end: 3, exit: 1 });
    const count = kind === "gradients" ? 1 + this.#random.below(3) : 0;
    const shards = Array.from({ length: count }, () => this.#random.below(SHARDS));
    return toLine(["begin", id, kind, this.#random.chance(0.6), ...shards]);
  }

  #answer(): string | undefined {
    const id = this.#random.pick([...this.#waiting.keys()]);
    const waiting = id === undefined ? undefined : this.#waiting.get(id);
    const asked = waiting?.splice(this.#random.below(waiting.length), 1)[0];
    if (id === undefined || asked === undefined) return undefined;
    const fails = this.#random.chance(0.08);
    if (typeof asked === "number") {
      if (fails) return toLine(["ask-failed", id, pickWord(this.#random, ERRORS)]);
      this.#closed += Number(this.#random.chance(0.2));
      return toLine(["step-answered", id, asked, this.#closed]);
    }
    if (asked === "gradients" && this.#random.chance(0.2)) {
      const code = pickWord(this.#random, GRADIENT_ERRORS);
      return toLine(["gradients-failed", id, code, this.#random.below(3)]);
    }
    if (fails) return toLine(["failed", id, pickWord(this.#random, ERRORS)]);
    if (asked === "enter") return toLine(["entered", id, ++this.#revision]);
    if (asked === "exit") return toLine(["exited", id]);
    if (asked === "clocks") return toLine(["clocks-sent", id]);
    return toLine(["gradients-sent", id, this.#random.chance(0.2) ? 2 : 0]);
  }

  #end(): string | undefined {
    const id = this.#random.pick([...this.#begun]);
    return id === undefined ? undefined : toLine(["end", id, "TIMEOUT"]);
  }

  #fellBack(): string {
    this.#closed = Math.max(0, this.#closed - this.#random.below(4));
    return toLine(["fell-back", this.#random.below(SHARDS)]);
  }
}
