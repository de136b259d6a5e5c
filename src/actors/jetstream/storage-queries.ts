import type { JetStreamManager } from "@nats-io/jetstream";
import type { JobSubjects } from "../../protocol/index.ts";
import { probeStorage } from "./storage-probe.ts";

interface Query {
  readonly bytes: number;
  readonly resolve: (fits: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * All questions of one host about the broker's space. One probe runs at a time, for all queries that have
 * come meanwhile: the probes of a thousand parameters that are created at once would block each other.
 */
export class StorageQueries {
  readonly #probe: (bytes: number) => Promise<boolean>;
  #waiting: Query[] = [];
  #isProbing = false;

  /** `probe` asks the broker whether it can reserve so many bytes. */
  constructor(probe: (bytes: number) => Promise<boolean>) {
    this.#probe = probe;
  }

  /** Whether the broker can reserve so many bytes, by a probe that begins after this call. */
  fits(bytes: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ bytes, resolve, reject });
      void this.#probeForAll();
    });
  }

  async #probeForAll(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    while (this.#waiting.length > 0) {
      const queries = this.#waiting;
      this.#waiting = [];
      await this.#answer(queries);
    }
    this.#isProbing = false;
  }

  /** Probes for the most bytes. If they do not fit, fewer may, so the other queries wait for the next probe. */
  async #answer(queries: readonly Query[]): Promise<void> {
    const most = queries.reduce((bytes, query) => Math.max(bytes, query.bytes), 0);
    try {
      const fits = await this.#probe(most);
      for (const query of queries) {
        if (fits || query.bytes === most) query.resolve(fits);
        else this.#waiting.push(query);
      }
    } catch (error) {
      for (const query of queries) query.reject(error);
    }
  }
}

/** Queries about the space for files of the broker that `manager` speaks to. */
export function storageQueries(manager: JetStreamManager, subjects: JobSubjects): StorageQueries {
  return new StorageQueries((bytes) => probeStorage(manager, subjects, "file", bytes));
}
