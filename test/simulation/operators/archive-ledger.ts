import type { ArchiverEntry } from "../../../src/actors/journal/archivers.ts";
import { parseArchiverEntry } from "../../../src/actors/journal/archivers.ts";
import { decodeEntry } from "../../../src/actors/journal/kv-bucket.ts";
import { decodeManifest } from "../../../src/actors/journal/manifest.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import { spanWith } from "../../../src/history/source.ts";
import { comparePositions, type Position } from "../../../src/protocol/index.ts";
import { promise } from "../violation.ts";
import type { BrokerMessage, ClientMessage, SimulatedBroker } from "./simulated-broker.ts";
import { RETAIN_RECORDS } from "./simulated-host.ts";
import type { SimulatedJob } from "./simulated-job.ts";

/** How long hosts wait for an archiver. */
export const GRACE_MS = 6_000;

/** A registration as the broker has stored it. */
interface Registration {
  /** The archiver's process, and its run. */
  readonly by: string;
  readonly seq: number;
  readonly shards: ArchiverEntry["shards"];
  /** When it was stored, by the broker's clock, and by that of the hosts. */
  readonly time: number;
  readonly ms: number;
}

/** A record that hosts have removed. */
interface Removed extends Position {
  readonly shard: number;
  /** Whether an archiver had said before that it has it. */
  readonly isTold: boolean;
}

type Kind = "record" | "snapshot";

const decoder = new TextDecoder();

/**
 * Notes what archivers tell the hosts of a job and what these remove, and knows by that what hosts must keep, and what
 * an archive must have.
 */
export class ArchiveLedger {
  readonly #job: SimulatedJob;
  readonly #broker: SimulatedBroker;
  readonly #told: Registration[] = [];
  /** Runs that have ended in order. */
  readonly #ended: Set<string> = new Set();
  /** When each host has asked last which archivers there are. */
  readonly #asked: Map<string, number> = new Map();
  readonly #records: Removed[] = [];
  /** By the sequences of their manifests, whether an archiver had said before that it has them. */
  readonly #snapshots: Map<number, boolean> = new Map();

  constructor(job: SimulatedJob, broker: SimulatedBroker) {
    this.#job = job;
    this.#broker = broker;
  }

  get #bucket(): string {
    return this.#job.subjects.bucket();
  }

  /** To be called before a message is performed. @throws a violation if a host trims what it must keep. */
  before(process: string, { subject, data }: ClientMessage): void {
    const text = decoder.decode(data);
    const isList = subject === `$JS.API.STREAM.INFO.KV_${this.#bucket}`;
    if (isList && text.includes(".archiver.")) this.#asked.set(process, this.#broker.now);
    const [, trimmed] = /^\$JS\.API\.STREAM\.PURGE\.(.*)$/.exec(subject) ?? [];
    if (trimmed !== undefined) this.#trim(process, trimmed, Number(JSON.parse(text).seq));
    const [, removed] = /^\$JS\.API\.STREAM\.DELETE\.(.*)$/.exec(subject) ?? [];
    if (removed !== undefined) this.#note(removed);
    const [, from] = /^\$JS\.API\.STREAM\.MSG\.DELETE\.(.*)$/.exec(subject) ?? [];
    if (from === this.#job.subjects.snapshotStream())
      this.#removeSnapshot(Number(JSON.parse(text).seq));
    if (from === `KV_${this.#bucket}`) this.#endRun(process, Number(JSON.parse(text).seq));
  }

  /** To be called after a message was performed. */
  after(
    process: string,
    { subject, data }: ClientMessage,
    [first]: readonly BrokerMessage[],
  ): void {
    const [, key] = /^\$KV\.[^.]+\.(archiver\..*)$/.exec(subject) ?? [];
    if (key === undefined || first === undefined) return;
    const answer = JSON.parse(decoder.decode(first.data)) as { seq?: number };
    if (answer.seq === undefined) return;
    const entry = parseArchiverEntry(decodeEntry(key, decoder.decode(data), this.#bucket), key);
    this.#told.push({
      ...{ by: process, seq: answer.seq, shards: entry.shards },
      ...{ time: this.#broker.now, ms: performance.now() },
    });
  }

  /** Whether an archiver has said that it has something. */
  #isTold(kind: Kind, shard: number, at: Position): boolean {
    return this.#told.some(({ shards }) => hasAtLeast(shards[shard]?.[kind], at));
  }

  /** The run that has come last: it is the one that archives. */
  get #newest(): string | undefined {
    return [...new Set(this.#told.map(({ by }) => by))].at(-1);
  }

  /** A run takes its own registration back when it has ended in order. */
  #endRun(process: string, seq: number): void {
    const own = this.#told.find((each) => each.seq === seq);
    if (own?.by === process) this.#ended.add(own.by);
  }

  #trim(process: string, name: string, below: number): void {
    const { shard, generation } = this.#job.subjects.parseJournalStream(name);
    const all = [...(this.#broker.streams.get(name)?.messages.keys() ?? [])];
    const last = all.findLast((seq) => seq < below);
    if (last !== undefined && all.length <= 2 * RETAIN_RECORDS)
      this.#requireTold(process, shard, { generation, seq: last });
    this.#note(name, below);
  }

  /** Notes that the records of a journal below a sequence go. */
  #note(name: string, below = Number.POSITIVE_INFINITY): void {
    const { shard, generation } = this.#job.subjects.parseJournalStream(name);
    const all = [...(this.#broker.streams.get(name)?.messages.keys() ?? [])];
    for (const seq of all.filter((each) => each < below)) {
      const at = { generation, seq };
      this.#records.push({ shard, ...at, isTold: this.#isTold("record", shard, at) });
    }
  }

  /** While the journal is small, hosts wait for the archiver that runs, unless it says nothing for its grace time. */
  #requireTold(process: string, shard: number, at: Position): void {
    const run = this.#newest;
    const own = this.#told.filter(({ by }) => by === run);
    const known = own.findLast(({ time }) => time < (this.#asked.get(process) ?? 0));
    const newest = own.at(-1);
    if (run === undefined || newest === undefined || known === undefined || this.#ended.has(run))
      return;
    if (performance.now() - known.ms > GRACE_MS) return;
    const what = `${process} trims shard ${shard} up to ${at.generation}:${at.seq}`;
    promise(
      hasAtLeast(newest.shards[shard]?.record, at),
      () => `${what}, which the archiver that runs, ${run}, has not copied`,
    );
  }

  #removeSnapshot(seq: number): void {
    const found = this.#manifests().find((each) => each.seq === seq);
    if (found === undefined || this.#snapshots.has(seq)) return;
    this.#snapshots.set(seq, this.#isTold("snapshot", found.shard, found.at));
  }

  /** All snapshots that there ever were. */
  #manifests(): { readonly seq: number; readonly shard: number; readonly at: Position }[] {
    const { ever } = this.#broker.stream(this.#job.subjects.snapshotStream());
    return [...ever.values()].flatMap(({ seq, subject, data }) => {
      const [, shard] = /\.(\d+)\.manifest$/.exec(subject) ?? [];
      return shard === undefined ? [] : [{ seq, shard: Number(shard), at: decodeManifest(data) }];
    });
  }

  /** Checks that an archive has what hosts were told that it has. */
  async checkTold(archive: ShardHistory): Promise<void> {
    const { shard } = archive;
    const told = "is not in the archive, though hosts were told that it is";
    for (const { at, removed } of await this.#missing(archive)) {
      const isTold = removed?.isTold ?? this.#isTold("record", shard, at);
      promise(!isTold, () => `record ${at.generation}:${at.seq} of shard ${shard} ${told}`);
    }
    const kept = (await archive.snapshots()).map(({ manifest }) => manifest);
    for (const { seq, at } of this.#manifests().filter((each) => each.shard === shard)) {
      const isTold = this.#snapshots.get(seq) ?? this.#isTold("snapshot", shard, at);
      const isMissing = isTold && !kept.some((manifest) => isSame(manifest, at));
      promise(!isMissing, () => `snapshot ${at.generation}:${at.seq} of shard ${shard} ${told}`);
    }
  }

  /**
   * Checks an archive in which an archiver has ended in order just now: it has all that the broker has, and names the
   * rest as missing.
   */
  async checkComplete(archive: ShardHistory): Promise<void> {
    const { shard } = archive;
    const spans = await archive.spans();
    const gaps = (await archive.gaps?.()) ?? [];
    for (const { at, removed } of await this.#missing(archive)) {
      const what = `record ${at.generation}:${at.seq} of shard ${shard} is not in the archive`;
      promise(removed !== undefined, () => `${what}, though the broker has it`);
      // Of a journal that it never saw it says nothing.
      const isKnown = spans.some(({ generation }) => generation === at.generation);
      promise(!isKnown || spanWith(gaps, at) !== undefined, () => `${what}, which does not say so`);
    }
  }

  /** The records that an archive lacks, of all that there ever were, and how they were removed. */
  async #missing(archive: ShardHistory) {
    const { shard } = archive;
    const spans = await archive.spans();
    const missing: { readonly at: Position; readonly removed: Removed | undefined }[] = [];
    for (let { generation } = this.#job.newest(shard).manifest; generation > 0; generation--) {
      const journal = this.#broker.findEver(this.#job.subjects.journalStream(shard, generation));
      for (const seq of journal?.ever.keys() ?? []) {
        const at = { generation, seq };
        if (spanWith(spans, at) !== undefined) continue;
        const removed = this.#records.find((each) => each.shard === shard && isSame(each, at));
        missing.push({ at, removed });
      }
    }
    return missing;
  }
}

function hasAtLeast(told: Position | undefined, at: Position): boolean {
  return told !== undefined && comparePositions(told, at) >= 0;
}

function isSame(a: Position, b: Position): boolean {
  return comparePositions(a, b) === 0;
}
