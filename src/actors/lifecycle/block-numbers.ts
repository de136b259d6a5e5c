import { BLOCK_NUMBER_MAX, integerField, PserverError } from "../../protocol/index.ts";
import { ENTRY_FORMAT, type KvEntry, readEntry } from "../journal/kv-bucket.ts";
import { Counter } from "./counter.ts";
import type { DeclaredLedger } from "./declared-ledger.ts";
import { BLOCKS_KEY, type BucketDeps, BucketEntry } from "./lock.ts";
import { type Parameter, UNNUMBERED } from "./parameter.ts";

const LAST_NUMBER: BucketEntry<number> = new BucketEntry(BLOCKS_KEY, parseLastNumber, (last) => ({
  format: ENTRY_FORMAT,
  last,
}));

/** Reads the entry of the last block number given; 0 if there is none. @throws BAD_VERSION, JOB_DAMAGED. */
export function parseLastNumber(stored: KvEntry | undefined): number {
  if (stored === undefined) return 0;
  return readEntry(stored.value, BLOCKS_KEY, (fields) => integerField(fields, "last", 1));
}

/**
 * Makes the counter of the numbers of a job's blocks. Should its entry be lost or an older one, as in a job that was
 * made by a fork, the numbers of the known parameters say how far it was.
 */
export function blockCounter(
  deps: BucketDeps,
  { catalog }: Pick<DeclaredLedger, "catalog">,
): Counter {
  return new Counter({
    ...deps,
    entry: LAST_NUMBER,
    floor: () => catalog.all().reduce((last, parameter) => Math.max(last, lastOf(parameter)), 0),
    check: (last) => {
      if (last <= BLOCK_NUMBER_MAX) return;
      const text = `a job: expected at most ${BLOCK_NUMBER_MAX} blocks to be declared; received ${last}`;
      throw new PserverError("TOO_LARGE", text, { expected: BLOCK_NUMBER_MAX, received: last });
    },
  });
}

function lastOf({ firstNumber, layout }: Parameter): number {
  return firstNumber + layout.blocks - 1;
}

/** Returns a parameter with numbers of its own for its blocks; as it is if it has some. */
export async function withNumbers(
  { numbers }: { readonly numbers: Counter },
  parameter: Parameter,
): Promise<Parameter> {
  if (parameter.firstNumber !== UNNUMBERED) return parameter;
  return { ...parameter, firstNumber: await numbers.take(parameter.layout.blocks) };
}
