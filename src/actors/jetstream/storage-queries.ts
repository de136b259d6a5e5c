/** Somebody who asks for room. */
interface Asker {
  readonly bytes: number;
  readonly resolve: (fits: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The room of a broker, for all that one host asks of it: one question at a time, on behalf of all that
 * have come meanwhile. A thousand parameters that are created at once would otherwise stand in each
 * other's way.
 */
export class Room {
  readonly #has: (bytes: number) => Promise<boolean>;
  #askers: Asker[] = [];
  #asking = false;

  /** `has`: asks the broker whether it can reserve so many bytes. */
  constructor(has: (bytes: number) => Promise<boolean>) {
    this.#has = has;
  }

  /** Whether the broker can reserve so many bytes, as it says after this call. */
  has(bytes: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#askers.push({ bytes, resolve, reject });
      void this.#askForAll();
    });
  }

  async #askForAll(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    while (this.#askers.length > 0) {
      const askers = this.#askers;
      this.#askers = [];
      await this.#ask(askers);
    }
    this.#asking = false;
  }

  /** Asks for the most; where that does not fit, less may, so the others are asked for again. */
  async #ask(askers: readonly Asker[]): Promise<void> {
    const most = askers.reduce((bytes, asker) => Math.max(bytes, asker.bytes), 0);
    try {
      const fits = await this.#has(most);
      for (const asker of askers) {
        if (fits || asker.bytes === most) asker.resolve(fits);
        else this.#askers.push(asker);
      }
    } catch (error) {
      for (const asker of askers) asker.reject(error);
    }
  }
}
