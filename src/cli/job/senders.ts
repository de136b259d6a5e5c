import type { Fields } from "../../protocol/codec.ts";
import { asMap, integerField, listField, textField } from "../../protocol/fields.ts";
import type { ListedShard } from "./participants.ts";

/** What a job's trainers have declared, and may. */
export interface Declared {
  readonly parameters: number;
  /** Bytes of values and optimizer state. */
  readonly heldBytes: number;
  readonly [more: string]: unknown;
}

/** Records of one trainer that were of no use, in all shards. */
export interface Waste {
  readonly trainer: string;
  /** Of its present session, less those that were applied. */
  readonly refused: number;
  readonly unreadable: number;
}

const ROWS_MAX = 1_000;

/** @throws BAD_MESSAGE if the entries are not what hosts say of declarations. */
export function parseDeclared(value: unknown): Declared {
  const fields = asMap(value, "declared");
  return {
    ...fields,
    parameters: integerField(fields, "parameters"),
    heldBytes: integerField(fields, "heldBytes"),
  };
}

/** Whose records were of no use, most first: each shard names those with the most. */
export function wasteOf(shards: readonly ListedShard[]): Waste[] {
  const waste = new Map<string, Waste>();
  for (const { senders } of shards) {
    if (senders === undefined) continue;
    const fields = asMap(senders, "senders");
    for (const [trainer, refused] of countRows(fields, "refusedOf")) {
      const known = waste.get(trainer) ?? { trainer, refused: 0, unreadable: 0 };
      waste.set(trainer, { ...known, refused: known.refused + refused });
    }
    for (const [trainer, unreadable] of countRows(fields, "unreadableOf")) {
      const known = waste.get(trainer) ?? { trainer, refused: 0, unreadable: 0 };
      waste.set(trainer, { ...known, unreadable: known.unreadable + unreadable });
    }
  }
  const total = ({ refused, unreadable }: Waste): number => refused + unreadable;
  return [...waste.values()].sort((a, b) => total(b) - total(a));
}

function countRows(fields: Fields, key: string): [trainer: string, records: number][] {
  if (fields[key] === undefined) return [];
  return listField(fields, key, ROWS_MAX).map((value) => {
    const row: Fields = { ...listField({ [key]: value }, key, 2) };
    return [textField(row, "0"), integerField(row, "1")];
  });
}
