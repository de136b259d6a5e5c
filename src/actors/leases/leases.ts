import { setTimeout as delay } from "node:timers/promises";
import { asMap, busy, textField } from "../../protocol/index.ts";

/** Value of a lease. Only the holder, known by `owner`, renews or releases it. */
export interface LeaseValue {
  /** Unique to one life of one holder. */
  readonly owner: string;
  readonly [entry: string]: unknown;
}

/**
 * Leases, which show who is alive. A lease ends by itself when it is not renewed for the lease time.
 * Nobody is notified of that; a process that waits for it must poll. A lease is no lock: its holder may
 * be paused and wake up later, so what must exclude others is fenced by an epoch of its own.
 *
 * The methods throw as those of `KvBucket` do, and may then have done their work.
 */
export interface Leases {
  /** Takes a lease that nobody holds; true too if `value.owner` holds it already. */
  claim(key: string, value: LeaseValue): Promise<boolean>;
  /** Extends one's own lease by another lease time; false if it is no longer held. */
  renew(key: string, value: LeaseValue): Promise<boolean>;
  /** Ends one's own lease; nothing happens if somebody else holds it. */
  release(key: string, value: LeaseValue): Promise<void>;
  /** The value of a lease; undefined if nobody holds it. */
  read(key: string): Promise<LeaseValue | undefined>;
  /** The held leases whose keys begin with `prefix`, which ends in a dot. */
  list(prefix: string): Promise<Map<string, LeaseValue>>;
  /** The keys of {@link Leases.list}, for the cost of one request. */
  keys(prefix: string): Promise<ReadonlySet<string>>;
}

const TRIES_MAX = 8;

/**
 * Repeats `attempt` while it returns undefined: somebody else wrote in between.
 * @throws BUSY after 8 attempts.
 */
export async function settleLease(
  key: string,
  attempt: () => Promise<boolean | undefined>,
): Promise<boolean> {
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
    await delay(Math.random() * 5 * tries);
  }
  throw busy(`lease ${key}: changed by others ${TRIES_MAX} times in a row`, {
    key,
    expected: TRIES_MAX,
  });
}

/** The value of a stored lease; @throws BAD_MESSAGE if it is none. */
export function parseLease(key: string, stored: unknown): LeaseValue {
  const fields = asMap(stored, `lease ${key}`);
  return { ...fields, owner: textField(fields, "owner") };
}
