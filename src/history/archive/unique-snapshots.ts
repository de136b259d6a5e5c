import { comparePositions } from "../../protocol/index.ts";
import type { KeptSnapshot } from "../source.ts";

/**
 * Snapshots by generation and record, ascending. Of those of one record only the one stored last is
 * there: a take-over commits the newest again.
 */
export function uniqueSnapshots(snapshots: readonly KeptSnapshot[]): KeptSnapshot[] {
  const unique = new Map<string, KeptSnapshot>();
  for (const snapshot of [...snapshots].sort((a, b) => a.seq - b.seq)) {
    const { generation, seq } = snapshot.manifest;
    unique.set(`${generation}:${seq}`, snapshot);
  }
  return [...unique.values()].sort((a, b) => comparePositions(a.manifest, b.manifest));
}
