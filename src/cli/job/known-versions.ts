import type { BlockVersions, VersionsReply } from "../../protocol/versions.ts";
import { formatCount, formatNumber, formatRanges } from "../output/amounts.ts";

/** Versions of parameters, as far as hosts have told them. */
export class KnownVersions {
  readonly #versions = new Map<string, BlockVersions>();
  readonly #silent = new Set<number>();
  #refusal: string | undefined;

  /** Takes a reply up that is about these names. */
  add(names: readonly string[], { versions, silent }: VersionsReply): void {
    for (const [i, name] of names.entries()) {
      const told = versions[i] ?? null;
      if (told !== null) this.#versions.set(name, told);
    }
    for (const shard of silent) this.#silent.add(shard);
  }

  /** Notes why nothing more can be asked. */
  refuse(reason: string): void {
    this.#refusal = reason;
  }

  /** Those of one parameter; undefined where they are not known, as before it is initialized. */
  of(name: string): BlockVersions | undefined {
    return this.#versions.get(name);
  }

  /** Why some are not known, for people; undefined if nothing kept anybody from telling. */
  get gap(): string | undefined {
    if (this.#refusal !== undefined) return `versions are not known: ${this.#refusal}`;
    if (this.#silent.size === 0) return undefined;
    const shards = formatCount(this.#silent.size, "shard");
    const text = this.#silent.size === 1 ? "does not answer" : "do not answer";
    return `${shards} ${text}, so versions of what they hold are not known: ${formatRanges([...this.#silent])}`;
  }
}

/** Versions as `--json` has them; both null where they are not known. */
export function versionEntries(known: BlockVersions | undefined): {
  readonly version: { readonly least: number; readonly most: number } | null;
  readonly updates: number | null;
} {
  if (known === undefined) return { version: null, updates: null };
  const { least, most, updates } = known;
  return { version: { least, most }, updates };
}

/** The version for people: one number if all blocks agree, else the lowest and the highest; `?` if unknown. */
export function describeVersion(known: BlockVersions | undefined): string {
  if (known === undefined) return "?";
  const { least, most } = known;
  return least === most ? formatNumber(least) : `${formatNumber(least)}–${formatNumber(most)}`;
}

/** The changes of blocks for people; `?` if unknown. */
export function describeUpdates(known: BlockVersions | undefined): string {
  return known === undefined ? "?" : formatNumber(known.updates);
}
