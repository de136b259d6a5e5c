import { WINDOW } from "./fold-maker.ts";
import type { TrainerIntent } from "./intents.ts";
import type { Entry } from "./journal.ts";

/** What a record ought to do to the blocks. */
export type Effect =
  | { readonly kind: "none" }
  | { readonly kind: "add"; readonly index: number; readonly element: number }
  | { readonly kind: "create"; readonly index: number }
  | { readonly kind: "remove"; readonly indexes: readonly number[] };

const NONE: Effect = { kind: "none" };

interface Life {
  readonly trainer: string;
  readonly session: number;
  /** Numbers that counted, whatever became of them. */
  readonly numbers: Set<number>;
  done: number;
}

/**
 * The rules once more, in the plainest form: it looks at what senders meant instead of at bytes,
 * and keeps all of the past instead of a table that forgets.
 */
export class Reference {
  readonly #lives: Life[] = [];
  readonly #epochs: Map<number, number> = new Map();
  #floor = 0;

  step({ intent }: Entry): Effect {
    if (intent.by === "trainer") return this.#trainer(intent);
    const { record } = intent;
    if (record.verb === "floor") this.#floor = Math.max(this.#floor, record.session);
    if (record.verb !== "drop") return NONE;
    const old = [...this.#epochs].filter(([, epoch]) => epoch <= record.epoch);
    const indexes = old.map(([index]) => index).sort();
    for (const index of indexes) this.#epochs.delete(index);
    return { kind: "remove", indexes };
  }

  #trainer(intent: TrainerIntent): Effect {
    if (intent.flaw === "damaged" || !this.#counts(intent)) return NONE;
    const { verb, index, epoch, element } = intent;
    const present = this.#epochs.get(index);
    if (verb === "init") {
      if (present !== undefined && epoch <= present) return NONE;
      this.#epochs.set(index, epoch);
      return { kind: "create", index };
    }
    if (intent.flaw === "unfit" || present !== epoch) return NONE;
    return { kind: "add", index, element };
  }

  /** Whether the record is the first of its number in a life that has not ended. */
  #counts({ trainer, session, n, done }: TrainerIntent): boolean {
    const later = this.#lives.some((life) => life.trainer === trainer && life.session > session);
    if (later || session <= this.#floor) return false;
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
