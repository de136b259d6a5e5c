import { sealMessage } from "../../../../src/protocol/codec.ts";
import {
  bytesOf,
  dtypeOf,
  type Encoding,
  isGrouped,
  type TensorData,
} from "../../../../src/protocol/dtypes.ts";
import { encodeElements } from "../../../../src/protocol/encoding/encoding.ts";
import { encodeGroups } from "../../../../src/protocol/encoding/grouped.ts";
import type { BatchRun } from "../../../../src/protocol/messages/batch-records.ts";
import {
  type Contribution,
  draftContribution,
} from "../../../../src/protocol/messages/contributions.ts";
import type { RecordHeader } from "../../../../src/protocol/messages/records.ts";

/** What a contribution has for a block. */
export interface ContributedBlock {
  readonly parameter: string;
  readonly index?: number;
  readonly epoch?: number;
  readonly data: TensorData;
  readonly encoding?: Encoding;
  /** A learning rate, which no contribution may name. */
  readonly lr?: number;
}

/** What a contribution says unless a test says otherwise. */
const CONTRIBUTION: Contribution = {
  fragment: "f",
  base: 0,
  steps: 10,
  tokens: 1000,
  form: "displacement",
  id: 1,
  part: 0,
  parts: 1,
};

/** A part of a contribution as a message: each block is a run of its own. */
export function contributionPayload(
  header: RecordHeader,
  contribution: Partial<Contribution>,
  blocks: readonly ContributedBlock[],
  numberOf: (parameter: string, epoch: number, index: number) => number,
): Uint8Array {
  const runs = blocks.map(({ parameter, index = 0, epoch = 1, data, encoding, lr }): BatchRun => {
    const operation = { op: "grad", lr } as const;
    const numbers = Uint32Array.of(numberOf(parameter, epoch, index));
    const none = { parts: undefined, norms: undefined, seen: undefined };
    const counts = Uint32Array.of(data.length);
    return { verb: "push", dtype: dtypeOf(data), encoding, operation, numbers, counts, ...none };
  });
  const said = { ...CONTRIBUTION, ...contribution };
  const { draft, values, scales } = draftContribution(header, said, runs);
  for (const [i, { data, encoding }] of blocks.entries()) {
    const [codes, own] = [values[i] as Uint8Array, scales[i] as Uint8Array];
    if (encoding === undefined) codes.set(bytesOf(data));
    else if (isGrouped(encoding)) {
      encodeGroups(encoding, [data.length], data as Float32Array, { scales: own, codes });
    } else encodeElements(encoding, data as Float32Array, codes);
  }
  return sealMessage(draft);
}
