import { mismatch, type PserverError } from "../../protocol/errors.ts";

import { quoteName } from "../../protocol/names.ts";

/** Numbers of Legion's queries and of the only answer that has one. */
export const QUERY = {
  pullFull: 20,
  pullPart: 21,
  pushFull: 22,
  pushPart: 23,
  pushFromIndices: 24,
  pullFromIndices: 25,
  createIfAbsent: 27,
  save: 28,
  answerPullFull: 30,
} as const;

/** A query about one parameter. */
export interface Named {
  readonly name: string;
}

/** A query about a part of a parameter: the indices of each dimension. */
export interface Part extends Named {
  readonly axes: readonly number[][];
}

/** value = alpha · value + beta · array. */
export interface Mix {
  readonly alpha: number;
  readonly beta: number;
}

/** A query, checked; the arrays that belong to it follow in frames of their own. */
export type LegionRequest =
  | ({ readonly query: "pullFull" | "pullFromIndices" | "createIfAbsent" } & Named)
  | ({ readonly query: "pullPart" } & Part)
  | ({ readonly query: "pushFull" | "pushFromIndices" } & Named & Mix)
  | ({ readonly query: "pushPart" } & Part & Mix)
  | { readonly query: "save"; readonly path: string };

/**
 * The query that a JSON frame holds.
 * @throws BAD_MESSAGE for an unknown number or an entry that is missing or of another type.
 */
export function parseRequest(fields: Readonly<Record<string, unknown>>): LegionRequest {
  switch (fields["query_id"]) {
    case QUERY.pullFull:
      return { query: "pullFull", name: text(fields, "name") };
    case QUERY.pullPart:
      return { query: "pullPart", name: text(fields, "name"), axes: axes(fields) };
    case QUERY.pushFull:
      return { query: "pushFull", name: text(fields, "name"), ...mix(fields) };
    case QUERY.pushPart:
      return { query: "pushPart", name: text(fields, "name"), axes: axes(fields), ...mix(fields) };
    case QUERY.pushFromIndices:
      return { query: "pushFromIndices", name: text(fields, "name"), ...mix(fields) };
    case QUERY.pullFromIndices:
      return { query: "pullFromIndices", name: text(fields, "name") };
    case QUERY.createIfAbsent:
      return { query: "createIfAbsent", name: text(fields, "name") };
    case QUERY.save:
      return { query: "save", path: text(fields, "path") };
    default:
      throw wrong("query_id", "20 to 25, 27 or 28", fields["query_id"]);
  }
}

function text(fields: Readonly<Record<string, unknown>>, entry: string): string {
  const value = fields[entry];
  if (typeof value === "string" && value !== "") return value;
  throw wrong(entry, "a text", value);
}

function mix(fields: Readonly<Record<string, unknown>>): Mix {
  return { alpha: number(fields, "alpha"), beta: number(fields, "beta") };
}

function number(fields: Readonly<Record<string, unknown>>, entry: string): number {
  const value = fields[entry];
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw wrong(entry, "a number", value);
}

function axes(fields: Readonly<Record<string, unknown>>): number[][] {
  const lists = fields["axis_numbers"];
  const isAxes = Array.isArray(lists) && lists.every(isListOfIntegers);
  if (isAxes) return lists as number[][];
  throw wrong("axis_numbers", "a list of whole numbers for each dimension", lists);
}

function isListOfIntegers(list: unknown): boolean {
  return Array.isArray(list) && list.every(Number.isSafeInteger);
}

function wrong(entry: string, expected: string, value: unknown): PserverError {
  const received = quoteName(JSON.stringify(value) ?? "nothing");
  return mismatch("BAD_MESSAGE", `query: ${entry}`, expected, received);
}
