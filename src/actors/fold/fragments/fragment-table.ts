import type { Fields } from "../../../protocol/codec.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { integerField, listField, numberField, textField } from "../../../protocol/fields.ts";
import {
  CONTRIBUTION_PARTS_MAX,
  DECLARED_MAX,
  MEMBERS_MAX,
  TRAINERS_MAX,
} from "../../../protocol/limits.ts";
import { accountRows, FATES, parseAccount } from "../../../protocol/messages/contributions.ts";
import { quoteName } from "../../../protocol/names.ts";
import { Ledger } from "./ledger.ts";
import { type OpenContributionRow, OpenContributions } from "./open-contributions.ts";
import { Samples } from "./samples.ts";

/** A contribution that is in the sums of the open round of a fragment. */
export interface RoundContribution {
  readonly trainer: string;
  /** Its record, or that of its last part; 0 if that is in a journal that was replaced. */
  readonly seq: number;
  readonly base: number;
  readonly steps: number;
  readonly tokens: number;
  readonly weight: number;
  /** Its parts as they came, if the round needs all contributions until it closes; else empty. */
  readonly kept: readonly Uint8Array[];
  /** By what guards have its tensors multiplied; of kept ones. */
  readonly clips: readonly Clip[];
}

/** A tensor of a contribution, and by what it is multiplied. */
type Clip = readonly [parameter: string, factor: number];

/** A fragment: how many of its rounds have closed, and the open one. The sums of elements are in slots of its blocks. */
export interface Fragment {
  readonly name: string;
  /** Number of closed rounds; the open one has the next number. */
  version: number;
  /** Sum of the weights in the open round. */
  weight: number;
  /** The contributions in the open round, in the order of the journal. */
  readonly round: RoundContribution[];
  /** Of each parameter in the open round: the weighted mean of the norms. Empty before the first contribution. */
  readonly norms: Map<string, number>;
  /** The version from which each member has contributed last. */
  readonly bases: Map<string, number>;
  /** The first version since which the fragment has had the same parameters, with values that may be kept. */
  since: number;
}

type FragmentRow = readonly [
  name: string,
  version: number,
  weight: number,
  round: readonly RoundRow[],
  norms: readonly (readonly [parameter: string, norm: number])[],
  bases: readonly (readonly [trainer: string, base: number])[],
  since: number,
];

type RoundRow = readonly [
  trainer: string,
  seq: number,
  base: number,
  steps: number,
  tokens: number,
  weight: number,
  kept: readonly Uint8Array[],
  clips: readonly Clip[],
];

/** The fragments of a shard in the state of a snapshot. */
export interface SavedFragments {
  readonly fragments: readonly FragmentRow[];
  /** Accounts by trainer: the tallies in the order of {@link FATES}. */
  readonly ledger: readonly (readonly [trainer: string, ...tallies: (readonly number[])[]])[];
  readonly open: readonly OpenContributionRow[];
}

/** The progress of the fragments of a shard; a live view. */
export interface FragmentProgress {
  /** Returns the fragment; undefined if nothing was contributed to it yet. */
  get(name: string): Readonly<Fragment> | undefined;
  /** The fragments to which something was contributed, in no particular order. */
  all(): Iterable<Readonly<Fragment>>;
  readonly ledger: Pick<Ledger, "of" | "total" | "sorted" | "size">;
  /** Bytes of contributions that are kept: incomplete ones, and those that their rounds need until they close. */
  readonly keptBytes: number;
}

/** Holds the fragments of a shard, what became of contributions, and the parts of incomplete ones. */
export class FragmentTable implements FragmentProgress {
  readonly #fragments: Map<string, Fragment> = new Map();
  readonly ledger: Ledger = new Ledger();
  readonly open: OpenContributions = new OpenContributions();
  /** Who may contribute; no part of the state. */
  readonly samples: Samples;

  /** `job`: name of the job, by which samples of members are drawn. */
  constructor(job: string) {
    this.samples = new Samples(job);
  }

  get keptBytes(): number {
    return this.open.bytes + this.roundBytes;
  }

  /** Bytes of the contributions that open rounds keep. */
  get roundBytes(): number {
    let bytes = 0;
    for (const { round } of this.#fragments.values()) {
      for (const { kept } of round) for (const part of kept) bytes += part.length;
    }
    return bytes;
  }

  get(name: string): Fragment | undefined {
    return this.#fragments.get(name);
  }

  all(): Iterable<Fragment> {
    return this.#fragments.values();
  }

  /** Returns the fragment of a name, which it adds if it is new. */
  obtain(name: string): Fragment {
    const known = this.#fragments.get(name);
    if (known !== undefined) return known;
    const fragment = newFragment(name);
    this.#fragments.set(name, fragment);
    return fragment;
  }

  /** Whether a contribution of the trainer is in an open round. */
  hasOpen(trainer: string): boolean {
    return [...this.all()].some(({ round }) => round.some((taken) => taken.trainer === trainer));
  }

  /** Forgets a fragment that no parameter belongs to any more. */
  delete(name: string): void {
    this.#fragments.delete(name);
    this.samples.delete(name);
  }

  /** Forgets from which versions trainers have contributed that are no members any more. */
  keepMembers(isMember: (trainer: string) => boolean): void {
    for (const { bases } of this.#fragments.values()) {
      for (const trainer of bases.keys()) if (!isMember(trainer)) bases.delete(trainer);
    }
  }

  /** Moves the contributions of open rounds to record 0: the sequences of the journal start again at 1. */
  restartJournal(): void {
    for (const { round } of this.#fragments.values()) {
      for (const [i, contribution] of round.entries()) round[i] = { ...contribution, seq: 0 };
    }
  }

  /**
   * Returns the trainers for which processed is not merged + late + dropped + what is in open rounds: none, unless this
   * program is wrong.
   */
  unbalanced(): string[] {
    const open = new Map<string, number>();
    for (const { round } of this.#fragments.values()) {
      for (const { trainer } of round) {
        open.set(trainer, (open.get(trainer) ?? 0) + 1);
      }
    }
    const accounts = new Set([...this.ledger.sorted().map(([trainer]) => trainer), ...open.keys()]);
    return [...accounts].filter((trainer) => {
      const { processed, merged, late, dropped } = this.ledger.of(trainer);
      const fates = merged.contributions + late.contributions + dropped.contributions;
      return processed.contributions !== fates + (open.get(trainer) ?? 0);
    });
  }

  /** Returns the state to save; equal tables give equal states. */
  save(): SavedFragments {
    const sorted = [...this.#fragments.values()].sort(byName);
    return {
      fragments: sorted.map(
        ({ name, version, weight, round, norms, bases, since }): FragmentRow => {
          const rows = round.map(
            ({ trainer, seq, base, steps, tokens, weight: own, kept, clips }): RoundRow => {
              return [trainer, seq, base, steps, tokens, own, kept, clips];
            },
          );
          return [
            name,
            version,
            weight,
            rows,
            [...norms].sort(byKey),
            [...bases].sort(byKey),
            since,
          ];
        },
      ),
      ledger: this.ledger.sorted().map(([trainer, account]) => {
        return [trainer, ...accountRows(account)];
      }),
      open: this.open.save(),
    };
  }

  /**
   * Restores what {@link save} returned, read by {@link parseSavedFragments}, into an empty table.
   * @throws SNAPSHOT_DAMAGED if no records lead to this state.
   */
  restore({ fragments, ledger, open }: SavedFragments): void {
    for (const [name, version, weight, round, norms, bases, since] of fragments) {
      if (this.#fragments.has(name)) throw damaged(`fragment ${quoteName(name)}: received twice`);
      const fragment = this.obtain(name);
      fragment.version = version;
      fragment.weight = weight;
      fragment.since = since;
      fragment.round.push(
        ...round.map(([trainer, seq, base, steps, tokens, own, kept, clips]) => {
          return { trainer, seq, base, steps, tokens, weight: own, kept, clips };
        }),
      );
      for (const [parameter, norm] of norms) fragment.norms.set(parameter, norm);
      for (const [trainer, base] of bases) fragment.bases.set(trainer, base);
      if (round.length === 0 && (weight !== 0 || norms.length > 0)) {
        throw damaged(
          `fragment ${quoteName(name)}: expected no sums in a round without contributions`,
        );
      }
    }
    for (const [trainer, ...tallies] of ledger) {
      this.ledger.restore(trainer, parseAccount(tallies));
    }
    const [trainer] = this.unbalanced();
    if (trainer !== undefined) {
      throw damaged(`account of ${quoteName(trainer)}: its tallies do not add up`);
    }
    for (const row of open) this.open.restore(row);
  }
}

/** Makes a fragment before its first contribution. */
export function newFragment(name: string): Fragment {
  const [norms, bases] = [new Map(), new Map()];
  return { name, version: 0, weight: 0, round: [], norms, bases, since: 0 };
}

/**
 * Reads a saved table and checks each field by itself.
 * @throws BAD_MESSAGE if a field is missing or malformed.
 */
export function parseSavedFragments(fields: Fields): SavedFragments {
  return {
    fragments: listField(fields, "fragments", DECLARED_MAX).map((value): FragmentRow => {
      const row: Fields = { ...listField({ fragment: value }, "fragment", 7) };
      return [
        textField(row, "0"),
        integerField(row, "1"),
        numberField(row, "2"),
        listField(row, "3", 2 * MEMBERS_MAX).map(parseRoundRow),
        pairs(row, "4", DECLARED_MAX, numberField),
        pairs(row, "5", MEMBERS_MAX, (pair, key) => integerField(pair, key)),
        integerField(row, "6"),
      ];
    }),
    ledger: listField(fields, "ledger", Number.POSITIVE_INFINITY).map((value) => {
      const [trainer, ...tallies] = listField({ account: value }, "account", 1 + FATES.length);
      return [textField({ trainer }, "trainer"), ...(tallies as (readonly number[])[])] as const;
    }),
    open: listField(fields, "open", TRAINERS_MAX).map((value): OpenContributionRow => {
      const row: Fields = { ...listField({ open: value }, "open", 3) };
      const parts = partsField(row, "2");
      return [textField(row, "0"), integerField(row, "1", 1), parts];
    }),
  };
}

function pairs(
  row: Fields,
  key: string,
  most: number,
  read: (pair: Fields, key: string) => number,
): [string, number][] {
  return listField(row, key, most).map((value) => {
    const pair: Fields = { ...listField({ pair: value }, "pair", 2) };
    return [textField(pair, "0"), read(pair, "1")];
  });
}

function parseRoundRow(entry: unknown): RoundRow {
  const row: Fields = { ...listField({ entry }, "entry", 8) };
  return [
    textField(row, "0"),
    integerField(row, "1"),
    integerField(row, "2"),
    integerField(row, "3"),
    integerField(row, "4"),
    numberField(row, "5"),
    partsField(row, "6"),
    pairs(row, "7", DECLARED_MAX, numberField),
  ];
}

function partsField(row: Fields, key: string): Uint8Array[] {
  return listField(row, key, CONTRIBUTION_PARTS_MAX).map((part) => {
    if (part instanceof Uint8Array) return part;
    throw new PserverError("BAD_MESSAGE", "expected the bytes of a part");
  });
}

function byName(a: Fragment, b: Fragment): number {
  return a.name < b.name ? -1 : 1;
}

function byKey([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1;
}

function damaged(message: string): PserverError {
  return new PserverError("SNAPSHOT_DAMAGED", message);
}
