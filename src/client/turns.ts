import type { Deadline } from "./deadline.ts";

/** Lets one call after the other in, in the order in which they asked. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Waits for the turn; gives what ends it. @throws what ends the call, which gives up its turn. */
  async take(deadline: Deadline): Promise<() => void> {
    const before = this.#last;
    let release: () => void = () => {};
    this.#last = new Promise((resolve) => {
      release = resolve;
    });
    try {
      await deadline.race(before);
    } catch (error) {
      // Those behind still wait for those before.
      before.then(release, release);
      throw error;
    }
    return release;
  }
}
