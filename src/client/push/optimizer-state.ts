import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import { bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import { mismatch } from "../../protocol/errors.ts";
import { type BlockPlace, blockPlaces } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { draftRecord, type RecordHeader } from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Topic, UpdateSource } from "../io/update-sender.ts";
import type { Sender } from "./tensor-update.ts";

/** What the optimizer of a parameter has kept of its values elsewhere, from which it goes on. */
export interface OptimizerState {
  /** Returns how many updates by gradients the elements from `start` on, `count` of them, have gone through. */
  readonly updates: (start: number, count: number) => number;
  /**
   * The optimizer's slots in the order of the protocol, each with as many elements as the parameter, or one for each
   * row. Waiting updates hold no copy.
   */
  readonly slots: readonly TensorData[];
}

/** Overwrites one slot of a block. */
class SlotUpdate implements UpdateSource {
  readonly shard: number;
  readonly blocks = 1;
  readonly dataBytes: number;
  readonly namesVersion = false;
  readonly #sender: Sender;
  readonly #info: ParameterInfo;
  readonly #index: number;
  readonly #slot: number;
  readonly #data: Uint8Array;

  constructor(
    sender: Sender,
    info: ParameterInfo,
    { index, shard }: BlockPlace,
    slot: number,
    data: Uint8Array,
  ) {
    this.shard = shard;
    this.dataBytes = data.length;
    this.#sender = sender;
    this.#info = info;
    this.#index = index;
    this.#slot = slot;
    this.#data = data;
  }

  get subject(): string {
    const { subjects, trainer } = this.#sender;
    return subjects.log(this.shard, trainer, "set", this.#info.name, this.#index);
  }

  get topic(): Topic {
    return { kind: "blocks", blocks: [{ parameter: this.#info.name, index: this.#index }] };
  }

  draft(header: RecordHeader, _namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const { epoch, dtype } = this.#info;
    const record = { verb: "set", ...header, epoch, dtype, slot: this.#slot } as const;
    const draft = draftRecord(record, this.dataBytes, allocate);
    draft.data.set(this.#data);
    return sealMessage(draft);
  }
}

/**
 * Returns the updates that bring a parameter's slots, cut at the borders of its blocks.
 * @throws BAD_LENGTH for a slot that has neither the elements of the parameter nor one for each of its rows.
 */
export function slotUpdates(
  sender: Sender,
  info: ParameterInfo,
  { slots }: OptimizerState,
): UpdateSource[] {
  const { elements } = info.layout;
  const places = blockPlaces(info.layout);
  return slots.flatMap((data, i) => {
    const share = elements / data.length;
    if (share !== 1 && data.length !== info.shape[0]) {
      const expected = `${elements} elements, or one for each row`;
      const what = `slot ${i + 1} of ${quoteName(info.name)}`;
      throw mismatch("BAD_LENGTH", what, expected, data.length, { parameter: info.name });
    }
    return places.map((place) => {
      const from = place.start / share;
      const part = data.subarray(from, from + place.count / share);
      return new SlotUpdate(sender, info, place, i + 1, bytesOf(part));
    });
  });
}
