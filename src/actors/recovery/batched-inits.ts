import { readBatchEntries } from "../fold/read-record.ts";
import type { Journal } from "../journal/journal.ts";
import { blockKey } from "../snapshot/state.ts";
import type { LackedBlock } from "./findings.ts";

/**
 * The lacked blocks that none of some batches initializes. Their subjects do not name blocks, so batches are
 * read one after the other, until no block is lacked. One that cannot be read initializes nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE or DENIED if the broker does not answer.
 */
export async function lackedAfterBatches(
  journal: Pick<Journal, "record">,
  generation: number,
  seqs: readonly number[],
  lacked: readonly LackedBlock[],
): Promise<LackedBlock[]> {
  let left = [...lacked];
  for (const seq of seqs) {
    if (left.length === 0) break;
    const record = await journal.record(generation, seq);
    const initialized = new Set(record === undefined ? [] : initializedBy(record.payload));
    left = left.filter(({ parameter, index }) => !initialized.has(blockKey(parameter, index)));
  }
  return left;
}

function initializedBy(payload: Uint8Array): string[] {
  return (readBatchEntries(payload) ?? [])
    .filter(({ record }) => record.verb === "init")
    .map(({ parameter, index }) => blockKey(parameter, index));
}
