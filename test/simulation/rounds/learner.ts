import type { Contribution } from "../../../src/protocol/messages/contributions.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { contributionPayload } from "../../actors/fold/fragments/contribution-payload.ts";
import { both } from "../../actors/fold/fragments/fragment-job.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import type { Random } from "../random.ts";

/** A record of a learner, and what it was told of it. */
interface SentRecord {
  readonly n: number;
  readonly payload: Uint8Array;
  outcome: Outcome | undefined;
}

/** A contribution as its sender knows it. */
export interface SentContribution {
  readonly trainer: string;
  readonly session: number;
  readonly id: number;
  readonly base: number;
  /** All elements of the displacement. */
  readonly value: number;
  readonly records: SentRecord[];
}

/** A trainer that contributes to the only fragment, one contribution after the other. */
export class Learner {
  readonly trainer: string;
  readonly sent: SentContribution[] = [];
  session = 1;
  readonly #random: Random;
  readonly #numberOf: (parameter: string, epoch: number, index: number) => number;
  #n = 0;
  #ids = 0;
  #base: number | undefined;
  #last = -1;

  constructor(
    trainer: string,
    random: Random,
    numberOf: (parameter: string, epoch: number, index: number) => number,
  ) {
    this.trainer = trainer;
    this.#random = random;
    this.#numberOf = numberOf;
  }

  get subject(): string {
    return SUBJECTS.contribute(SHARD, this.trainer);
  }

  /** Learns which version the fragment has. */
  pulled(version: number): void {
    this.#base = Math.max(version, this.#base ?? 0);
  }

  /** The records of its present contribution whose outcome it does not know; begins another one if there are none. */
  open(mayBegin: boolean): readonly SentRecord[] {
    const present = this.sent.at(-1);
    const unknown =
      present?.session === this.session
        ? present.records.filter(({ outcome }) => outcome === undefined)
        : [];
    if (unknown.length > 0 || !mayBegin) return unknown;
    if (this.#base === undefined || this.#base <= this.#last) return [];
    this.#last = this.#base;
    return this.#begin(this.#base);
  }

  #begin(base: number): readonly SentRecord[] {
    const { trainer, session } = this;
    const id = ++this.#ids;
    const value = this.#random.below(17) - 8;
    const [u, w] = both(value, value);
    if (u === undefined || w === undefined) return [];
    const parts = this.#random.chance(0.5) ? [[u], [w]] : [[u, w]];
    const records = parts.map((blocks, part) => {
      const n = ++this.#n;
      const header = { session, n, done: 0, reply: `${SUBJECTS.inbox(trainer)}.1` };
      const said: Partial<Contribution> = { base, id, part, parts: parts.length };
      const payload = contributionPayload(header, said, blocks, this.#numberOf);
      return { n, payload, outcome: undefined };
    });
    this.sent.push({ trainer, session, id, base, value, records });
    return records;
  }

  /** Takes an outcome; that of an earlier session says nothing any more. */
  told(session: number, outcome: Outcome): void {
    if (session !== this.session) return;
    for (const { session: own, records } of this.sent) {
      const record = own === session ? records.find(({ n }) => n === outcome.n) : undefined;
      if (record !== undefined && outcome.code !== "REJOIN" && outcome.code !== "SUPERSEDED") {
        record.outcome ??= outcome;
      }
    }
  }

  /** Dies, and begins anew under the next session, from what it will pull. */
  restart(): void {
    this.session += 1;
    this.#n = 0;
    this.#ids = 0;
    this.#base = undefined;
    this.#last = -1;
  }
}
