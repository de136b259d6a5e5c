/**
 * Whether the owner of a shard is known to own it at this moment: its lease is held, and since the lease was
 * claimed the broker has taken a manifest of this owner. Without the latter another host may have owned the
 * shard before the claim, and acknowledged records that this one has not folded.
 */
export class OwnershipProof {
  readonly #tenure: () => bigint | undefined;
  /** The tenure in which the broker has last taken a manifest of this owner. */
  #proven: bigint | undefined;

  /** `tenure`: of the shard's lease, undefined while that is not held. */
  constructor(tenure: () => bigint | undefined) {
    this.#tenure = tenure;
  }

  /** Whether the lease is held. */
  get isLeaseHeld(): boolean {
    return this.#tenure() !== undefined;
  }

  /** Whether it is known; also false at once when the lease runs out. */
  get holds(): boolean {
    const tenure = this.#tenure();
    return tenure !== undefined && tenure === this.#proven;
  }

  /** Runs what has the broker take a manifest: it proves the tenure in which it began. */
  async by<Result>(commit: () => Promise<Result>): Promise<Result> {
    const tenure = this.#tenure();
    const result = await commit();
    this.#proven = tenure;
    return result;
  }
}
