import type { RecordAnswer } from "../../src/actors/fold/shard.ts";
import type { Outcome } from "../../src/protocol/messages/outcomes.ts";
import type { TrainerIntent } from "./intents.ts";
import { promise } from "./violation.ts";

/** What a trainer was told of a record in the end. */
export type Verdict = "applied" | "rejected";

/** Codes that tell nothing of what became of an earlier copy of the record. */
const SILENT_CODES = ["SETTLED", "SUPERSEDED", "REJOIN"];

/** Codes by which a sound client may see each kind of record rejected. */
const EXPECTED_CODES = {
  damaged: ["BAD_CHECKSUM"],
  unfit: ["BAD_LENGTH", "STALE_EPOCH", "NOT_INITIALIZED"],
  init: ["ALREADY_INITIALIZED", "STALE_EPOCH", "UNKNOWN_PARAMETER"],
  push: ["STALE_EPOCH", "NOT_INITIALIZED"],
  batch: ["STALE_EPOCH", "NOT_INITIALIZED"],
} as const;

/** Remembers every answer given by any owner and holds them against each other. */
export class Verdicts {
  readonly #bySeq: Map<number, string> = new Map();
  readonly #byRecord: Map<string, Verdict> = new Map();

  /** An owner folded record `seq`: every owner must give the same answer to it. */
  noteSettled(seq: number, settled: RecordAnswer | undefined): void {
    const answer = settled === undefined ? "nothing" : words(settled);
    const first = this.#bySeq.get(seq) ?? answer;
    this.#bySeq.set(seq, first);
    promise(
      first === answer,
      () => `two owners answer record ${seq} with "${first}" and "${answer}"`,
    );
  }

  /** An answer has reached a trainer. Whatever else it was told must not contradict it. */
  noteTold(intent: TrainerIntent, outcome: Outcome): Verdict | undefined {
    const { code } = outcome;
    if (code !== undefined && SILENT_CODES.includes(code)) return undefined;
    if (code !== undefined) {
      const kind = intent.flaw === "none" ? intent.verb : intent.flaw;
      promise(
        (EXPECTED_CODES[kind] as readonly string[]).includes(code),
        () => `${describe(intent)} was answered ${code}: ${outcome.message}`,
      );
    }
    const verdict = code === undefined ? "applied" : "rejected";
    const key = `${intent.trainer} ${intent.session} ${intent.n}`;
    const first = this.#byRecord.get(key) ?? verdict;
    this.#byRecord.set(key, first);
    promise(first === verdict, () => `${describe(intent)} was told ${first}, then ${verdict}`);
    return verdict;
  }
}

function words({ trainer, session, reply, outcome }: RecordAnswer): string {
  const { n, seq, version, code = "applied", message = "" } = outcome;
  return `${trainer} ${session} ${reply}: ${n} ${seq} ${version} ${code} ${message}`;
}

/** A record in words, for messages. */
export function describe(intent: TrainerIntent): string {
  const { trainer, session, n, verb, index, epoch, element } = intent;
  return `${verb} of ${trainer} (session ${session}, number ${n}, block ${index}, epoch ${epoch}, element ${element})`;
}
