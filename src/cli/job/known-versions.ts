import type { KnownVersions } from "../../client/admin/job-admin.ts";
import type { BlockVersions } from "../../protocol/versions.ts";
import { formatCount, formatNumber, formatRanges } from "../output/amounts.ts";

/** Why some versions are not known, for people; undefined if all were told. */
export function describeUnknown({ silentShards, refusal }: KnownVersions): string | undefined {
  if (refusal !== undefined) return `versions are not known: ${refusal}`;
  if (silentShards.length === 0) return undefined;
  const shards = formatCount(silentShards.length, "shard");
  const verb = silentShards.length === 1 ? "does" : "do";
  return `${shards} ${verb} not answer, so versions of what they hold are not known: ${formatRanges(silentShards)}`;
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
