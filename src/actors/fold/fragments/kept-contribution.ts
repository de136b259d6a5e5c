import { decodeMessage } from "../../../protocol/codec.ts";
import {
  bytesOf,
  codeBytes,
  type Dtype,
  type Encoding,
  encodedBytes,
  groupCount,
  isGrouped,
  SCALE_BYTES,
} from "../../../protocol/dtypes.ts";
import { decodeGroups } from "../../../protocol/encoding/grouped.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { parseBatch } from "../../../protocol/messages/batch-records.ts";
import { type Contribution, parseContribution } from "../../../protocol/messages/contributions.ts";
import { entryBytes, entryGroups, firstOffsets, passEntry } from "../batch/run-change.ts";
import type { BlockActor } from "../block-actor.ts";
import type { BlockTable } from "../block-table.ts";
import type { Payload } from "../elements.ts";
import type { RoundContribution } from "./fragment-table.ts";

/** The elements of a block in a kept contribution: views of its bytes, still encoded. */
interface KeptElements {
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  readonly values: Uint8Array;
  /** Of a grouped encoding. */
  readonly scales: Uint8Array | undefined;
}

/**
 * A contribution that a round keeps until it closes, as it came, with its elements by block. Nothing is decoded before
 * it is asked for.
 */
export class KeptContribution {
  readonly trainer: string;
  readonly base: number;
  readonly form: Contribution["form"];
  readonly #clips: ReadonlyMap<string, number>;
  readonly #elements: Map<BlockActor, KeptElements> = new Map();

  /**
   * Reads the parts of a contribution of an open round.
   * @throws BAD_MESSAGE and the like if they are none.
   */
  constructor(
    { trainer, base, kept, clips }: RoundContribution,
    blocks: BlockTable,
    entriesMax: number,
  ) {
    let form: Contribution["form"] = "displacement";
    for (const part of kept) {
      const message = decodeMessage(part);
      form = parseContribution(message.fields).form;
      for (const run of parseBatch(message, entriesMax).runs) {
        const offsets = firstOffsets();
        const { dtype, encoding, numbers } = run;
        for (const [place, number] of numbers.entries()) {
          const block = blocks.ofNumber(number);
          if (block === undefined) throw new PserverError("STALE_EPOCH", `number ${number}`);
          this.#elements.set(block, {
            ...{ dtype, encoding },
            ...(isGrouped(encoding)
              ? groupsAt(entryGroups(run, encoding, place))
              : { values: entryBytes({ ...run, encoding }, place, offsets), scales: undefined }),
          });
          passEntry(run, place, offsets);
        }
      }
    }
    this.trainer = trainer;
    this.base = base;
    this.form = form;
    this.#clips = new Map(clips);
  }

  /** Returns by what the displacement of a block is multiplied; undefined if it stays. */
  clipOf({ parameter }: BlockActor): number | undefined {
    return this.#clips.get(parameter);
  }

  /** Returns `n` elements of a block from `start` on, a multiple of the size of a group; decoded if they are in groups. */
  elementsOf(block: BlockActor, start: number, n: number): Payload {
    const elements = this.#elements.get(block);
    if (elements === undefined) throw missing(block, this.trainer);
    const { dtype, encoding, values, scales } = elements;
    if (!isGrouped(encoding) || scales === undefined) {
      const size = encodedBytes(dtype, encoding, 1);
      const form = isGrouped(encoding) ? undefined : encoding;
      return { dtype, encoding: form, bytes: values.subarray(start * size, (start + n) * size) };
    }
    const floats = new Float32Array(n);
    const scale = groupCount(start) * SCALE_BYTES;
    const code = codeBytes(encoding, start);
    decodeGroups(
      encoding,
      [n],
      {
        scales: scales.subarray(scale, scale + groupCount(n) * SCALE_BYTES),
        codes: values.subarray(code, code + codeBytes(encoding, n)),
      },
      floats,
    );
    return { dtype, bytes: bytesOf(floats) };
  }
}

function groupsAt({ scales, codes }: ReturnType<typeof entryGroups>): {
  readonly values: Uint8Array;
  readonly scales: Uint8Array;
} {
  return { values: codes, scales };
}

function missing({ label }: BlockActor, trainer: string): PserverError {
  return new PserverError("INTERNAL", `${label}: expected elements of it from ${trainer}`);
}
