import type { Synchronization } from "../../protocol/index.ts";
import { checkShard } from "../check-shard.ts";
import type { HistorySource } from "../source.ts";
import { type ArchiveFacts, readArchiveFacts } from "./archive-facts.ts";
import { ArchiveShard } from "./archive-shard.ts";

/** The history in an archive's directory; it may be read while an archiver adds to it. */
export class ArchiveSource implements HistorySource {
  readonly name: string;
  readonly facts: ArchiveFacts;

  constructor(directory: string, facts: ArchiveFacts) {
    this.name = directory;
    this.facts = facts;
  }

  /** Opens an archive. @throws BAD_ARCHIVE if there is none, BAD_VERSION, IO. */
  static async open(directory: string): Promise<ArchiveSource> {
    return new ArchiveSource(directory, await readArchiveFacts(directory));
  }

  get job(): string {
    return this.facts.job;
  }

  get shards(): number {
    return this.facts.shards;
  }

  get synchronization(): Synchronization {
    return this.facts.synchronization;
  }

  shard(shard: number): ArchiveShard {
    checkShard(this, shard);
    return new ArchiveShard(this.name, this.facts, shard);
  }

  async close(): Promise<void> {
    // No file stays open.
  }
}
