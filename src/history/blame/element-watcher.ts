import type { Block } from "../../actors/fold/block.ts";
import { readable, readBatchEntries, readRecordHead } from "../../actors/fold/read-record.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { slotPlan } from "../../actors/fold/slots.ts";
import { DTYPES, type JobSubjects, type TrainerRecord } from "../../protocol/index.ts";
import { viewElements } from "../element-view.ts";
import type { FoldVisitor } from "../replay/fold-records.ts";
import type { TimedRecord } from "../source.ts";
import type { ElementPlace } from "./element.ts";
import type { ElementChange, ElementValue, StepShare } from "./element-change.ts";

/** An element of a block between two records. */
interface Seen {
  readonly block: Block;
  readonly version: number;
  readonly accumulated: number;
  readonly value: ElementValue;
  /** Sum of the gradients of the open step; 0 where gradients are not added up. */
  readonly gradients: ElementValue;
}

/** Watches one element while its shard is folded, and tells each change. */
export class ElementWatcher implements FoldVisitor {
  readonly #place: ElementPlace;
  readonly #generation: number;
  readonly #subjects: JobSubjects;
  readonly #onChange: (change: ElementChange) => void;
  #seen: Seen | undefined;
  #shares: StepShare[] = [];

  /** `generation`: of the records that it sees. */
  constructor(
    place: ElementPlace,
    generation: number,
    subjects: JobSubjects,
    onChange: (change: ElementChange) => void,
  ) {
    this.#place = place;
    this.#generation = generation;
    this.#subjects = subjects;
    this.#onChange = onChange;
  }

  /** The value that was seen last; undefined if the element is not there. */
  get value(): ElementValue | undefined {
    return this.#seen?.value;
  }

  /** Looks at the element before the first record. */
  start(shard: Shard): void {
    this.#seen = this.#look(shard);
  }

  after(record: TimedRecord, shard: Shard): void {
    const { parameter, index } = this.#place;
    const block = shard.block(parameter, index);
    const seen = this.#seen;
    const isSame =
      block === seen?.block &&
      block?.version === seen?.version &&
      block?.accumulated === seen?.accumulated;
    if (isSame) return;
    const now = this.#look(shard);
    this.#seen = now;
    if (seen !== undefined && now?.block === seen.block && now.version === seen.version) {
      this.#noteShare(record, seen, now);
    } else if (!Object.is(now?.value, seen?.value)) {
      this.#onChange(this.#changeBy(record, shard, seen, now));
      this.#shares = [];
    } else {
      this.#shares = [];
    }
  }

  /** Notes what a gradient added to the open step. */
  #noteShare(record: TimedRecord, seen: Seen, now: Seen): void {
    const trainer = this.#senderOf(record)?.trainer;
    if (trainer === undefined) return;
    this.#shares.push({ trainer, gradient: subtract(now.gradients, seen.gradients) });
  }

  #changeBy(
    record: TimedRecord,
    shard: Shard,
    seen: Seen | undefined,
    now: Seen | undefined,
  ): ElementChange {
    const { seq, timeMs } = record;
    const isStep = seen !== undefined && seen.accumulated > 0 && now?.accumulated === 0;
    const closed = isStep ? { step: shard.steps.closed, shares: this.#shares } : undefined;
    const [before, after] = [seen?.value, now?.value];
    return {
      shard: this.#place.shard,
      position: { generation: this.#generation, seq },
      timeMs,
      kind: kindOf(closed !== undefined, seen, now, () => this.#verbOf(record)),
      sender: this.#senderOf(record),
      step: closed,
      before,
      after,
      change: before === undefined || after === undefined ? undefined : subtract(after, before),
    };
  }

  /** What a trainer's record did to the element's block, which may be one of many in a batch. */
  #verbOf({ subject, payload }: TimedRecord): TrainerRecord["verb"] {
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed?.by === "trainer") return parsed.verb;
    const { parameter, index } = this.#place;
    const own = readBatchEntries(payload)?.find(
      (entry) => entry.parameter === parameter && entry.index === index,
    );
    return own?.record.verb ?? "push";
  }

  #senderOf({ subject, payload }: TimedRecord): ElementChange["sender"] {
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed === undefined || parsed.by === "host") return undefined;
    const head = readRecordHead(payload);
    return head && { trainer: parsed.trainer, session: head.session, n: head.n };
  }

  #look(shard: Shard): Seen | undefined {
    const { parameter, index, element } = this.#place;
    const block = shard.block(parameter, index);
    if (block === undefined) return undefined;
    const at = element - block.start;
    if (at < 0 || at >= block.count) return undefined;
    const { version, accumulated } = block;
    const { accumulator } = slotPlan(block, shard.synchronization);
    const gradients = accumulator === undefined ? 0 : elementOf(block, accumulator, at);
    return { block, version, accumulated, value: elementOf(block, 0, at), gradients };
  }
}

function kindOf(
  isStep: boolean,
  seen: Seen | undefined,
  now: Seen | undefined,
  verbOf: () => TrainerRecord["verb"],
): ElementChange["kind"] {
  if (now === undefined) return "drop";
  if (seen === undefined || seen.block !== now.block) return "init";
  return isStep ? "step" : verbOf();
}

function elementOf(block: Block, slot: number, at: number): ElementValue {
  const { bytes } = DTYPES[block.dtype];
  const element = block.slotBytes(slot).subarray(at * bytes, (at + 1) * bytes);
  return viewElements(block.dtype, element)[0] ?? 0;
}

/** The difference of two values of one type. */
export function subtract(a: ElementValue, b: ElementValue): ElementValue {
  return typeof a === "bigint" && typeof b === "bigint" ? a - b : Number(a) - Number(b);
}
