import { hashName } from "../../protocol/index.ts";

/**
 * The host that should own a shard: the one with the highest hash together with it (rendezvous
 * hashing), so that a host that joins or leaves moves the fewest shards. Undefined without hosts.
 */
export function placeShard(
  job: string,
  shard: number,
  hosts: Iterable<string>,
): string | undefined {
  const scored = Array.from(hosts, (host) => {
    return { host, score: mix(hashName(`${job}/${shard}/${host}`)) };
  });
  const [best] = scored.sort((a, b) => b.score - a.score || (a.host < b.host ? -1 : 1));
  return best?.host;
}

/** Spreads a hash: FNV-1a mixes the last characters of a text into low bits only. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
