import type { StreamInfo } from "@nats-io/jetstream";

/**
 * Nanoseconds without a sign of a broker after which the leader of a stream no longer counts it; signs come every second.
 * Brokers themselves call one that was killed offline only after two and a half minutes.
 */
const LOST_NS = 10e9;

/** How far a cluster keeps the copies of a job's streams that the job asks for. */
export interface ReplicaReport {
  /** Copies of each stream that the job asks for. */
  readonly wanted: number;
  /** Brokers that hold copies and cannot be reached, in the order of their names. */
  readonly missing: readonly string[];
  /** Streams with fewer copies than wanted, or without a leader, which stores nothing then; by name. */
  readonly lacking: readonly LackingStream[];
}

/** A stream with fewer copies than its job asks for. */
interface LackingStream {
  readonly stream: string;
  /** Copies that can be reached and are not behind, that of the leader included; 0 without a leader. */
  readonly copies: number;
}

/**
 * Reports on the copies of streams, as the broker describes them; undefined for a job that asks for one copy.
 * @param wanted copies that the job asks for.
 */
export function reportReplicas(
  streams: readonly Pick<StreamInfo, "config" | "cluster">[],
  wanted: number,
): ReplicaReport | undefined {
  if (wanted <= 1) return undefined;
  const missing = new Set<string>();
  const lacking: LackingStream[] = [];
  for (const { config, cluster } of streams) {
    const others = cluster?.replicas ?? [];
    for (const { name, offline, active } of others) {
      if (offline === true || active > LOST_NS) missing.add(name);
    }
    const hasLeader = (cluster?.leader ?? "") !== "";
    const current = others.filter(({ current, offline }) => current && offline !== true);
    const copies = hasLeader ? 1 + current.length : 0;
    if (copies < wanted) lacking.push({ stream: config.name, copies });
  }
  lacking.sort((a, b) => (a.stream < b.stream ? -1 : 1));
  return { wanted, missing: [...missing].sort(), lacking };
}
