import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  type Fields,
  type Message,
} from "../codec.ts";
import {
  codeBytes,
  type Dtype,
  type Encoding,
  encodedBytes,
  groupCount,
  isGrouped,
  SCALE_BYTES,
} from "../dtypes.ts";
import { ensureError, PserverError } from "../errors.ts";
import {
  asMap,
  dtypeField,
  encodingField,
  flagField,
  integerField,
  listField,
  wordField,
} from "../fields.ts";
import { BATCH_RUNS_MAX } from "../limits.ts";
import { TRAINER_VERBS, type TrainerVerb } from "../subjects.ts";
import {
  ColumnReader,
  ColumnWriter,
  checkTotal,
  entryLabel,
  float64ColumnBytes,
  type PartColumns,
  type PartTotals,
  paddedBytes,
  partColumnsBytes,
  partTotals,
  readPartColumns,
  uint32ColumnBytes,
  writePartColumns,
} from "./columns.ts";
import { parsePartEntry, partEntry } from "./parts.ts";
import { type PushOperation, parseOperation, type RecordHeader } from "./records.ts";

// A batch is one record with updates of many blocks of a shard. Each update is an *entry*; entries that ask for the
// same with elements of one type are a *run*. The header says what a run asks for and how long its columns are; the
// tensor bytes have the columns of one run after the other, and behind its columns the values of all its entries,
// without a gap. A block is named by the number that it got when it was declared.

/** What the entries of a run ask for, besides their blocks. */
export interface RunHeader {
  readonly verb: TrainerVerb;
  readonly dtype: Dtype;
  /** Encoding of the values; undefined for that of the type. */
  readonly encoding: Encoding | undefined;
  /** Set for a push, without `seen`, which is a column. */
  readonly operation: PushOperation | undefined;
}

/** A run as its sender has it: its columns, without values. */
export interface BatchRun extends RunHeader {
  /** The number of each entry's block. */
  readonly numbers: Uint32Array;
  /** How many elements each entry has. */
  readonly counts: Uint32Array;
  /** Set if the entries are parts of their blocks. */
  readonly parts: PartColumns | undefined;
  /** For each entry the L2 norm of the whole gradient that it is of. */
  readonly norms: Float64Array | undefined;
  /** For each entry the version of the block from which its gradient was computed; 0 for none. */
  readonly seen: Float64Array | undefined;
}

/** A run as it was received. */
export interface ReceivedRun extends BatchRun {
  /** Number of its first entry in the record. */
  readonly first: number;
  /** Elements of all entries. */
  readonly elements: number;
  /** In a grouped encoding the scales of all entries, else empty: a view of the message, as are the values. */
  readonly scales: Uint8Array;
  /** The values of all entries; in a grouped encoding their codes. */
  readonly values: Uint8Array;
}

/** A batch as it was received. */
export interface Batch {
  /** The step of its gradients. */
  readonly step: number | undefined;
  readonly entries: number;
  readonly runs: readonly ReceivedRun[];
}

/** A batch that is being written. */
export interface DraftBatch {
  /** The message, to be sealed once the values are there. */
  readonly draft: DraftMessage;
  /** The places of the values, one for each run, to be written by the caller. */
  readonly values: readonly Uint8Array[];
  /** The places of the scales in a grouped encoding, likewise; empty in others. */
  readonly scales: readonly Uint8Array[];
}

/** Bytes that an entry takes at least: two numbers in columns. */
const ENTRY_BYTES_MIN = 8;

/**
 * Begins a batch: writes header and columns; the caller writes the values of each run and seals the message. `more` are
 * further entries of the header.
 */
export function draftBatch(
  { session, n, done, reply }: RecordHeader,
  runs: readonly BatchRun[],
  allocate?: Allocate,
  more: Fields = {},
): DraftBatch {
  const step = runs.map(stepOf).find((named) => named !== undefined);
  const lengths = runs.map(lengthsOf);
  const bytes = runs.reduce((sum, run, i) => sum + runBytes(run, lengths[i] as RunLengths), 0);
  const fields = runs.map((run, i) => runFields(run, lengths[i] as RunLengths));
  const entries = { session, n, done, reply, step, ...more, runs: fields };
  const draft = draftMessage(entries, bytes, allocate);
  const writer = new ColumnWriter(draft.data);
  const scales: Uint8Array[] = [];
  const values = runs.map((run, i) => {
    const own = lengths[i] as RunLengths;
    writer.put(run.numbers);
    writer.put(run.counts);
    writePartColumns(writer, run.parts);
    writer.put(run.norms);
    writer.put(run.seen);
    scales.push(writer.place(scaleBytes(own)));
    return writer.place(valueBytes(run, own));
  });
  return { draft, values, scales };
}

/** The lengths of a run's columns. */
interface RunLengths {
  readonly entries: number;
  readonly elements: number;
  readonly part: PartTotals | undefined;
  readonly norms: boolean;
  readonly seen: boolean;
  /** Of a grouped encoding; undefined for others. */
  readonly groups: GroupTotals | undefined;
}

/** How many scales the entries of a run have, and how many bytes their codes. */
interface GroupTotals {
  readonly scales: number;
  readonly codes: number;
}

function lengthsOf({ numbers, counts, parts, norms, seen, encoding }: BatchRun): RunLengths {
  const entries = numbers.length;
  let elements = 0;
  for (let i = 0; i < counts.length; i++) elements += counts[i] as number;
  return {
    ...{ entries, elements, part: partTotals(parts) },
    ...{ norms: norms !== undefined, seen: seen !== undefined },
    groups: groupTotals(encoding, counts),
  };
}

function groupTotals(encoding: Encoding | undefined, counts: Uint32Array): GroupTotals | undefined {
  if (!isGrouped(encoding)) return undefined;
  let [scales, codes] = [0, 0];
  for (let i = 0; i < counts.length; i++) {
    const count = counts[i] as number;
    scales += groupCount(count);
    codes += codeBytes(encoding, count);
  }
  return { scales, codes };
}

function scaleBytes({ groups }: RunLengths): number {
  return (groups?.scales ?? 0) * SCALE_BYTES;
}

function valueBytes(
  { dtype, encoding }: Pick<RunHeader, "dtype" | "encoding">,
  { elements, groups }: RunLengths,
): number {
  return groups?.codes ?? encodedBytes(dtype, encoding, elements);
}

/** Returns the bytes of a run's columns and values. @throws UNSUPPORTED */
function runBytes(header: Pick<RunHeader, "dtype" | "encoding">, lengths: RunLengths): number {
  const { entries, part, norms, seen } = lengths;
  const columns = 2 * uint32ColumnBytes(entries) + partColumnsBytes(entries, part);
  const perEntry = (norms ? 1 : 0) + (seen ? 1 : 0);
  const values = paddedBytes(scaleBytes(lengths)) + paddedBytes(valueBytes(header, lengths));
  return columns + perEntry * float64ColumnBytes(entries) + values;
}

function runFields(run: BatchRun, lengths: RunLengths): Fields {
  const { verb, dtype, encoding, operation } = run;
  const { entries, elements, part, norms, seen, groups } = lengths;
  const fields: Record<string, unknown> = { verb, dtype, entries, elements };
  // Absent fields are left out here: inside a list the encoder would not leave out an undefined one.
  if (encoding !== undefined) fields["encoding"] = encoding;
  if (groups !== undefined) fields["scales"] = groups.scales;
  if (groups !== undefined && encoding === "e3m0") fields["codes"] = groups.codes;
  if (operation !== undefined) fields["op"] = operation.op;
  if (operation?.op === "mix") {
    fields["alpha"] = operation.alpha;
    fields["beta"] = operation.beta;
  } else if (operation?.lr !== undefined) {
    fields["lr"] = operation.lr;
  }
  if (part !== undefined) {
    const { rows, inner } = part;
    fields["part"] = partEntry(inner === undefined ? { rows } : { rows, inner });
  }
  if (norms) fields["norms"] = true;
  if (seen) fields["seen"] = true;
  return fields;
}

function stepOf({ operation }: RunHeader): number | undefined {
  return operation?.op === "grad" ? operation.step : undefined;
}

/**
 * Reads the header of a batch's runs and checks the lengths of all columns before it reads one; then it checks what
 * can be checked without the blocks.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_LENGTH, BAD_VALUE or UNSUPPORTED, naming the run or the entry; TOO_LARGE for
 * more than `entriesMax` entries.
 */
export function parseBatch({ fields, data }: Message, entriesMax: number): Batch {
  const step = fields["step"] === undefined ? undefined : integerField(fields, "step", 1);
  const list = listField(fields, "runs", BATCH_RUNS_MAX);
  if (list.length === 0) throw badMessage("runs: expected at least one; received none");
  const heads = list.map((value, i) => naming(i, () => parseRun(value, step)));
  const entries = heads.reduce((sum, { lengths }) => sum + lengths.entries, 0);
  if (entries > entriesMax) {
    const text = `expected at most ${entriesMax} entries in a batch; received ${entries}`;
    throw new PserverError("TOO_LARGE", text, { expected: entriesMax, received: entries });
  }
  const bytes = heads.reduce((sum, head) => sum + head.bytes, 0);
  if (data.length !== bytes) {
    const text = `tensor bytes: expected ${bytes}; received ${data.length}`;
    throw new PserverError("BAD_LENGTH", text, { expected: bytes, received: data.length });
  }
  const reader = new ColumnReader(data);
  let first = 0;
  const runs = heads.map(({ header, lengths }, i) => {
    const run = naming(i, () => readRun(reader, header, lengths, first));
    first += lengths.entries;
    return run;
  });
  return { step, entries, runs };
}

/** Returns how many entries a batch claims to have, as far as its tensor bytes can hold them; reads no column. */
export function claimedEntries({ fields, data }: Message): number {
  const runs: unknown = fields["runs"];
  if (!Array.isArray(runs)) return 0;
  let entries = 0;
  for (const run of runs as readonly unknown[]) {
    const claimed = (run as { readonly entries?: unknown } | null)?.entries;
    if (typeof claimed === "number" && claimed > 0) entries += claimed;
  }
  return Math.min(entries, data.length / ENTRY_BYTES_MIN);
}

/** The header of a run, and what its columns take. */
interface ParsedRun {
  readonly header: RunHeader;
  readonly lengths: RunLengths;
  readonly bytes: number;
}

function parseRun(value: unknown, step: number | undefined): ParsedRun {
  const fields = asMap(value, "run");
  const verb = wordField(fields, "verb", TRAINER_VERBS);
  const dtype = dtypeField(fields);
  const isPush = verb === "push";
  const encoding = isPush ? encodingField(fields) : undefined;
  const operation = isPush ? parseOperation(fields, step, undefined) : undefined;
  const part = isPush ? parsePartEntry(fields) : undefined;
  const isGradient = operation?.op === "grad";
  const elements = integerField(fields, "elements", 1);
  encodedBytes(dtype, encoding, elements);
  const lengths: RunLengths = {
    ...{ entries: integerField(fields, "entries", 1), elements },
    part: part && { rows: part.rows, inner: part.inner },
    norms: isPush && flagField(fields, "norms"),
    seen: isGradient && flagField(fields, "seen"),
    groups: parseGroups(fields, encoding, elements),
  };
  const header = { verb, dtype, encoding, operation };
  return { header, lengths, bytes: runBytes(header, lengths) };
}

/** Reads how long the columns of a grouped encoding are; undefined for other encodings. @throws BAD_MESSAGE */
function parseGroups(
  fields: Fields,
  encoding: Encoding | undefined,
  elements: number,
): GroupTotals | undefined {
  if (!isGrouped(encoding)) return undefined;
  const scales = integerField(fields, "scales", 1);
  // Two codes of e3m0 are a byte, and each entry begins at one.
  return { scales, codes: encoding === "e3m0" ? integerField(fields, "codes", 1) : elements };
}

function readRun(
  reader: ColumnReader,
  header: RunHeader,
  lengths: RunLengths,
  first: number,
): ReceivedRun {
  const { encoding } = header;
  const { entries, elements, part } = lengths;
  const numbers = reader.uint32(entries);
  const counts = reader.uint32(entries);
  const parts = readPartColumns(reader, entries, part);
  const norms = lengths.norms ? reader.float64(entries) : undefined;
  const seen = lengths.seen ? reader.float64(entries) : undefined;
  const scales = reader.bytes(scaleBytes(lengths));
  const values = reader.bytes(valueBytes(header, lengths));
  checkTotal(counts, elements, "elements", { first });
  checkGroups(lengths.groups, groupTotals(encoding, counts));
  if (parts !== undefined && part !== undefined) {
    checkTotal(parts.rows, part.rows, "rows", { first });
    if (parts.inner !== undefined) {
      checkTotal(parts.inner, part.inner ?? 0, "offsets in a row", { first });
    }
  }
  if (seen !== undefined) checkVersions(seen, "seen", first);
  const columns = { numbers, counts, parts, norms, seen };
  return { ...header, ...columns, first, elements, scales, values };
}

/** @throws BAD_LENGTH unless a run has as many scales and codes as its entries need. */
function checkGroups(received: GroupTotals | undefined, expected: GroupTotals | undefined): void {
  if (received === undefined || expected === undefined) return;
  for (const what of ["scales", "codes"] as const) {
    if (received[what] === expected[what]) continue;
    throw new PserverError(
      "BAD_LENGTH",
      `${what}: expected ${expected[what]} for the elements of the entries; received ${received[what]}`,
      { expected: expected[what], received: received[what] },
    );
  }
}

/** @throws BAD_VALUE, naming the entry, unless all numbers are versions, or 0. */
export function checkVersions(column: Float64Array, what: string, first: number): void {
  for (let i = 0; i < column.length; i++) {
    const version = column[i] as number;
    if (Number.isSafeInteger(version) && version >= 0) continue;
    throw new PserverError(
      "BAD_VALUE",
      `${entryLabel(first + i)}: ${what}: expected a version, or 0; received ${version}`,
      { entry: first + i, received: String(version) },
    );
  }
}

/** Runs a check of a run, and puts the run before the text of its error unless that names an entry. */
function naming<Value>(run: number, check: () => Value): Value {
  try {
    return check();
  } catch (cause) {
    const { code, message, details } = ensureError(cause);
    if (message.startsWith("entry ")) throw cause;
    throw new PserverError(code, `runs[${run}]: ${message}`, { ...details, run }, { cause });
  }
}

function badMessage(text: string): PserverError {
  return new PserverError("BAD_MESSAGE", text);
}
