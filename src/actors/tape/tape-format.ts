import type { Dtype } from "../../protocol/dtypes.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import type { UpdateVerb } from "../updates/update-event.ts";

// The lines of a tape, as docs/protocol.md has them. The places in these lists are part of the format: new
// words go to the end.

/** Version of the lines in a message. */
export const TAPE_FORMAT = 1;

/** Verbs by their number in a line. */
export const TAPE_VERBS: readonly UpdateVerb[] = [
  "unreadable",
  "init",
  "push",
  "set",
  "clock",
  "note",
  "batch",
  "rules",
  "members",
  "declare",
  "drop",
  "floor",
  "sessions",
  "forget",
];

/** Outcomes by their number. */
export const TAPE_OUTCOMES = ["applied", "rejected", "repeated", "unreadable"] as const;

/** Operations by their number. */
export const TAPE_OPERATIONS = ["init", "set", "mix", "grad"] as const;

/** Element types by their number. */
export const TAPE_DTYPES: readonly Dtype[] = [
  "int32",
  "uint32",
  "int64",
  "uint64",
  "float32",
  "float64",
];

/** Encodings by their number; 0 is none. */
export const TAPE_ENCODINGS: readonly (Encoding | undefined)[] = [undefined, "bfloat16", "float16"];

/** Bits of the byte that a record begins with; the lowest two are the outcome. */
export const RECORD = {
  ...{ sender: 4, step: 8, note: 16, bytes: 32, entries: 64 },
  /** Why the record could not be described. */
  undescribed: 128,
} as const;

/** Bits of the byte that an entry begins with. */
export const ENTRY = {
  /** Operation, element type and encoding are those of the entry before in the message. */
  alike: 1,
  part: 2,
  version: 4,
  behind: 8,
  statistics: 16,
  /** The statistics are float64. */
  wide: 32,
  /** Some elements are zero or not finite. */
  counts: 64,
} as const;
