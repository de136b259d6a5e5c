import { PserverError } from "../../../protocol/errors.ts";
import {
  type ContributionAccount,
  type ContributionFate,
  NO_ACCOUNT,
  sumOfAccounts,
  sumOfTallies,
  type Tally,
} from "../../../protocol/messages/contributions.ts";
import { quoteName } from "../../../protocol/names.ts";

/** The account of trainers whose own accounts had to make room for others: no trainer has an empty id. */
export const FORMER = "";

/**
 * Counts what became of the contributions of each trainer to the fragments of a shard, with their steps and tokens. It
 * is part of the fold. Processed = merged + late + dropped + what is in open rounds, at every record.
 */
export class Ledger {
  readonly #accounts: Map<string, ContributionAccount> = new Map();
  #total: ContributionAccount = NO_ACCOUNT;

  /** Number of accounts. */
  get size(): number {
    return this.#accounts.size;
  }

  /** Returns the account of a trainer. */
  of(trainer: string): ContributionAccount {
    return this.#accounts.get(trainer) ?? NO_ACCOUNT;
  }

  /** The sum of all accounts. */
  get total(): ContributionAccount {
    return this.#total;
  }

  /**
   * Adds a contribution to one tally of a trainer. A new account that would be one more than `accountsMax` takes the
   * place of the first one that is not needed, which joins that of former trainers. Needed are those of members and of
   * contributions in open rounds.
   */
  count(
    trainer: string,
    fate: ContributionFate,
    { steps, tokens }: Pick<Tally, "steps" | "tokens">,
    limits: { readonly accountsMax: number; readonly isNeeded: (trainer: string) => boolean },
  ): void {
    const known = this.#accounts.get(trainer);
    if (known === undefined && this.#accounts.size >= limits.accountsMax) {
      this.#retire(limits.isNeeded);
    }
    const account = known ?? NO_ACCOUNT;
    const own = { contributions: 1, steps, tokens };
    this.#accounts.set(trainer, { ...account, [fate]: sumOfTallies(account[fate], own) });
    this.#total = { ...this.#total, [fate]: sumOfTallies(this.#total[fate], own) };
  }

  /** Lists the accounts by trainer, in order of the UTF-16 code units of the ids. */
  sorted(): [trainer: string, account: ContributionAccount][] {
    return [...this.#accounts].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Restores a saved account. @throws SNAPSHOT_DAMAGED if the trainer has one. */
  restore(trainer: string, account: ContributionAccount): void {
    if (this.#accounts.has(trainer)) {
      const text = `account of ${quoteName(trainer)}: expected one; received two`;
      throw new PserverError("SNAPSHOT_DAMAGED", text);
    }
    this.#accounts.set(trainer, account);
    this.#total = sumOfAccounts([this.#total, account]);
  }

  #retire(isNeeded: (trainer: string) => boolean): void {
    const [trainer] = [...this.#accounts.keys()]
      .filter((id) => id !== FORMER && !isNeeded(id))
      .sort();
    if (trainer === undefined) return;
    const account = this.of(trainer);
    this.#accounts.delete(trainer);
    this.#accounts.set(FORMER, sumOfAccounts([this.of(FORMER), account]));
  }
}
