import type { DeclareRecord } from "../../src/protocol/messages/host-records.ts";
import { WINDOW } from "./fold-maker.ts";
import { blocksOf, type TrainerIntent } from "./intents.ts";
import type { Entry } from "./journal.ts";

/** The expected effect of a record on the blocks. */
export type Effect =
  | { readonly kind: "none" }
  | { readonly kind: "add"; readonly indexes: readonly number[]; readonly element: number }
  | { readonly kind: "create"; readonly index: number }
  | { readonly kind: "remove"; readonly indexes: readonly number[] };

const NONE: Effect = { kind: "none" };

interface Life {
  readonly trainer: string;
  readonly session: number;
  /** Admitted numbers, whether applied or rejected. */
  readonly numbers: Set<number>;
  done: number;
}

/**
 * The rules of the fold restated as plainly as possible: it looks at the intents of senders instead of
 * bytes, and keeps the whole past instead of a table that forgets.
 */
export class Reference {
  readonly #lives: Life[] = [];
  readonly #epochs: Map<number, number> = new Map();
  /** Sessions that hosts have ended. */
  readonly #ended: Set<number> = new Set();
  /** The trainer that may initialize the parameter, and the epoch. */
  #grant: { readonly trainer: string; readonly epoch: number } | undefined;

  effectOf({ intent }: Entry): Effect {
    if (intent.by === "trainer") return this.#trainer(intent);
    const { record } = intent;
    if (record.verb === "floor") this.#end(record.session, []);
    if (record.verb === "sessions") this.#end(record.upTo, record.live);
    if (record.verb === "declare") this.#declare(record);
    if (record.verb !== "drop") return NONE;
    if (this.#grant !== undefined && this.#grant.epoch <= record.epoch) this.#grant = undefined;
    const old = [...this.#epochs].filter(([, epoch]) => epoch <= record.epoch);
    const indexes = old.map(([index]) => index).sort();
    for (const index of indexes) this.#epochs.delete(index);
    return { kind: "remove", indexes };
  }

  #end(upTo: number, live: readonly number[]): void {
    for (let session = 1; session <= upTo; session++) {
      if (!live.includes(session)) this.#ended.add(session);
    }
  }

  #declare({ trainer, parameters }: DeclareRecord): void {
    for (const { epoch } of parameters) {
      if (epoch > (this.#grant?.epoch ?? 0)) this.#grant = { trainer, epoch };
    }
  }

  #trainer(intent: TrainerIntent): Effect {
    if (intent.flaw === "damaged" || !this.#counts(intent)) return NONE;
    const { verb, index, epoch, element } = intent;
    if (verb === "init") {
      const present = this.#epochs.get(index);
      if (epoch !== this.#grant?.epoch || intent.trainer !== this.#grant.trainer) return NONE;
      if (present !== undefined && epoch <= present) return NONE;
      this.#epochs.set(index, epoch);
      return { kind: "create", index };
    }
    const indexes = blocksOf(intent);
    // Of a batch, all or none.
    const fits = indexes.every((block) => this.#epochs.get(block) === epoch);
    if (intent.flaw === "unfit" || !fits) return NONE;
    return { kind: "add", indexes, element };
  }

  /** Whether the record is the first of its number in a life that has not ended. */
  #counts({ trainer, session, n, done }: TrainerIntent): boolean {
    const later = this.#lives.some((life) => life.trainer === trainer && life.session > session);
    // A trainer whose session has ended is forgotten with all that came before.
    if (this.#ended.has(session)) return false;
    if (later) return false;
    const known = this.#lives.find((life) => life.trainer === trainer && life.session === session);
    const life = known ?? { trainer, session, numbers: new Set<number>(), done: 0 };
    if (n <= life.done || life.numbers.has(n) || n > Math.max(done, life.done) + WINDOW)
      return false;
    if (known === undefined) this.#lives.push(life);
    life.numbers.add(n);
    life.done = Math.max(life.done, done);
    return true;
  }
}
