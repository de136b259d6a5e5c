import type { JetStreamClient, JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import {
  asMap,
  comparePositions,
  decodeMessage,
  ensureError,
  integerField,
  JETSTREAM_ERRORS,
  type JobSubjects,
  listField,
  PserverError,
  readCrc,
  textField,
  unpackValue,
} from "../../protocol/index.ts";
import {
  fromBrokerError,
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import type { StreamPublisher } from "../../transport/jetstream.ts";
import { mapConcurrently } from "../concurrent.ts";
import { type BlockHeader, heldBytes, slotPlan } from "../fold/block-actor.ts";
import { parseFoldState } from "../fold/fold-state.ts";
import { type JournalRecord, readable } from "../fold/journal-record.ts";
import { Shard } from "../fold/shard.ts";
import type { ArchivedShard } from "./archivers.ts";
import type { JournalInfo } from "./journal.ts";
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  type PieceRef,
  type StoredManifest,
  toPieceRef,
} from "./manifest.ts";
import { soundCopy } from "./replicas.ts";
import { brokerCall, ensureFileStream, readStream } from "./streams.ts";

/** The stored pieces of one block at one epoch and version: its values, then slots 1, 2, … */
export interface BlockPieces {
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
  readonly version: number;
  /** How many gradients are added up in its open step. */
  readonly accumulated: number;
  readonly slots: readonly PieceRef[];
}

/** The content of a snapshot's state: the fold without values, and references to the values. */
export interface SnapshotState {
  readonly fold: unknown;
  readonly pieces: readonly BlockPieces[];
}

/** Limit of a shard's blocks. */
const BLOCKS_MAX = 1_000_000;

/** Limit of a block's slots, values included. */
const SLOTS_MAX = 16;

/** Returns the key of a block in tables. It is unambiguous, because the index comes first and has no colon. */
export function blockKey(parameter: string, index: number): string {
  return `${index}:${parameter}`;
}

/**
 * Reads the state that a manifest names.
 * @throws SNAPSHOT_DAMAGED if a part is lost or has changed.
 */
export async function readSnapshotState(
  store: Pick<SnapshotReader, "read">,
  manifest: Manifest,
): Promise<SnapshotState> {
  const parts: Uint8Array[] = [];
  for (const ref of manifest.state) parts.push(decodeMessage(await store.read(ref)).data);
  try {
    const fields = asMap(unpackValue(Buffer.concat(parts)), "state");
    return {
      fold: fields["fold"],
      pieces: listField(fields, "pieces", BLOCKS_MAX).map(toBlockPieces),
    };
  } catch (cause) {
    throw new PserverError(
      "SNAPSHOT_DAMAGED",
      "the state of a snapshot cannot be read",
      {},
      { cause },
    );
  }
}

function toBlockPieces(value: unknown): BlockPieces {
  const fields = asMap(value, "pieces");
  return {
    parameter: textField(fields, "parameter"),
    index: integerField(fields, "index"),
    epoch: integerField(fields, "epoch", 1),
    version: integerField(fields, "version"),
    accumulated: integerField(fields, "accumulated"),
    slots: listField(fields, "slots", SLOTS_MAX).map(toPieceRef),
  };
}

/** A shard restored from a snapshot, or an empty one. */
export interface LoadedShard {
  readonly shard: Shard;
  /** Its stored pieces, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
}

/** How many pieces are read from the broker at a time. */
const READS_AT_ONCE = 4;

/** Where a snapshot is loaded from, and into what. */
export interface SnapshotPlace {
  readonly subjects: JobSubjects;
  readonly shard: number;
  readonly store: Pick<SnapshotReader, "read">;
  /** Reserves memory for the values of these blocks. @throws NO_MEMORY. */
  readonly reserve?: (valueBytes: number, blocks: readonly BlockHeader[]) => void;
}

/**
 * Restores the shard from a manifest's snapshot.
 * @throws SNAPSHOT_DAMAGED if a piece of it is lost or has changed; the errors of `reserve`.
 */
export async function loadSnapshot(
  { subjects, shard: number, store, reserve }: SnapshotPlace,
  { manifest }: Pick<StoredManifest, "manifest">,
): Promise<LoadedShard> {
  const state = await readSnapshotState(store, manifest);
  const { blocks, synchronization } = parseFoldState(state.fold);
  const valueBytes = blocks.map((block) => heldBytes(block, slotPlan(block, synchronization)));
  reserve?.(
    valueBytes.reduce((sum, bytes) => sum + bytes, 0),
    blocks,
  );
  const shard = Shard.restoreEmpty({ subjects, shard: number }, state.fold);
  shard.continueChecksum(manifest.checksum);
  await loadBlocks(shard, state.pieces, store);
  const pieces = state.pieces.map(
    (entry) => [blockKey(entry.parameter, entry.index), entry] as const,
  );
  return { shard, stored: new Map(pieces) };
}

/** Loads the slots of a restored shard from their pieces, a few at a time. */
async function loadBlocks(
  shard: Shard,
  pieces: readonly BlockPieces[],
  store: Pick<SnapshotReader, "read">,
): Promise<void> {
  const items = pieces.flatMap((entry) => entry.slots.map((ref, slot) => ({ entry, ref, slot })));
  const load = async ({ entry, ref, slot }: (typeof items)[number]): Promise<void> => {
    const { data } = decodeMessage(await store.read(ref));
    shard.loadSlot(entry.parameter, entry.index, slot, data);
  };
  await mapConcurrently(items, load, READS_AT_ONCE);
  shard.checkLoaded();
}

/** Dependencies of {@link SnapshotReader}. */
export interface SnapshotReaderDeps {
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/** A message of the snapshot stream. */
interface StoredMessage {
  readonly seq: number;
  readonly data: Uint8Array;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** A manifest in the stream: its sequence, when it was stored, and its content; undefined if it cannot be read. */
export interface DatedManifest extends Omit<StoredMessage, "data"> {
  readonly manifest: Manifest | undefined;
}

/** Reads one shard's part of the snapshot stream of a job. */
export class SnapshotReader {
  readonly #deps: SnapshotReaderDeps;
  readonly #subjects: JobSubjects;
  readonly #shard: number;
  #readBytes = 0;

  constructor(deps: SnapshotReaderDeps) {
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#shard = deps.shard;
  }

  /** Bytes of the pieces that this reader has read. */
  get readBytes(): number {
    return this.#readBytes;
  }

  /**
   * Reads the message that a reference names into a buffer of its own. If it is damaged, and several brokers have
   * copies of it, a sound one is taken.
   * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
   */
  async read(piece: PieceRef): Promise<Uint8Array> {
    try {
      return this.#checked(piece, await this.#bytes(piece.seq));
    } catch (error) {
      if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
      const copy = await this.#soundCopy(piece);
      if (copy === undefined) throw error;
      return copy;
    }
  }

  /** Looks for a sound copy of a piece; undefined if there is none. */
  async #soundCopy(piece: PieceRef): Promise<Uint8Array | undefined> {
    const { manager } = this.#deps;
    const isSound = ({ payload }: JournalRecord): boolean =>
      readable(() => this.#checked(piece, payload)) !== undefined;
    const [action, details] = ["reading a copy of a snapshot", { shard: this.#shard }];
    const copy = await brokerCall(action, details, () =>
      soundCopy(manager, this.#subjects.snapshotStream(), piece.seq, isSound),
    );
    return copy && Uint8Array.from(copy.payload);
  }

  /** Returns the bytes of a piece. @throws SNAPSHOT_DAMAGED unless they are those that were stored. */
  #checked(piece: PieceRef, bytes: Uint8Array | undefined): Uint8Array {
    if (bytes === undefined) throw this.#damaged(piece, "is not in the stream");
    try {
      decodeMessage(bytes);
    } catch (cause) {
      throw this.#damaged(piece, "cannot be read", cause);
    }
    if (readCrc(bytes) !== piece.crc) throw this.#damaged(piece, "has another checksum");
    this.#readBytes += bytes.length;
    return bytes;
  }

  /** Reads the newest manifest from the leader; undefined without one. */
  async lastManifest(): Promise<StoredManifest | undefined> {
    const subject = this.#subjects.manifest(this.#shard);
    const stored = await this.message({ last_by_subj: subject });
    return stored && { seq: stored.seq, manifest: decodeManifest(stored.data) };
  }

  /** Reads all kept manifests, oldest first. @throws SNAPSHOT_DAMAGED if one cannot be read. */
  async manifests(): Promise<StoredManifest[]> {
    const messages = await this.#manifestMessages();
    return messages.map(({ seq, data }) => ({ seq, manifest: decodeManifest(data) }));
  }

  /** Reads like {@link manifests}, with the times, and with undefined for a manifest that cannot be read. */
  async manifestEntries(): Promise<DatedManifest[]> {
    const messages = await this.#manifestMessages();
    return messages.map(({ seq, data, timeMs }) => {
      return { seq, timeMs, manifest: readable(() => decodeManifest(data)) };
    });
  }

  async #manifestMessages(): Promise<StoredMessage[]> {
    const subject = this.#subjects.manifest(this.#shard);
    const found: StoredMessage[] = [];
    for (let seq = 1; ; ) {
      const stored = await this.message({ seq, next_by_subj: subject });
      if (stored === undefined) return found;
      found.push(stored);
      seq = stored.seq + 1;
    }
  }

  async #bytes(seq: number): Promise<Uint8Array | undefined> {
    const stream = this.#subjects.snapshotStream();
    try {
      // Direct get sends plain bytes; only a message that it lacks is read from the leader, in base64.
      const direct = await this.#deps.manager.direct.getMessage(stream, { seq });
      if (direct !== null) return Uint8Array.from(direct.data);
    } catch (error) {
      if (fromBrokerError(error, "reading").code === "CLOSED")
        throw fromBrokerError(error, "reading");
    }
    return (await this.message({ seq }))?.data;
  }

  /** Reads one message from the leader; undefined if there is none. */
  protected async message(
    query: { seq: number; next_by_subj?: string } | { last_by_subj: string },
  ): Promise<StoredMessage | undefined> {
    try {
      const stored = await this.#deps.manager.streams.getMessage(
        this.#subjects.snapshotStream(),
        query,
      );
      if (stored === null) return undefined;
      return { seq: stored.seq, data: stored.data, timeMs: stored.time.getTime() };
    } catch (error) {
      if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return undefined;
      throw fromBrokerError(error, `reading snapshots of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  #damaged(piece: PieceRef, what: string, cause?: unknown): PserverError {
    return new PserverError(
      "SNAPSHOT_DAMAGED",
      `shard ${this.#shard}: snapshot message ${piece.seq} ${what}`,
      { shard: this.#shard, seq: piece.seq },
      { cause },
    );
  }
}

/** Time limit for storing one message. */
const STORE_TIMEOUT_MS = 10_000;

/** The part of the snapshots' limit that manifests may take when it is reached. */
const MANIFESTS_SHARE = 1 / 32;

/** The header by which the broker tells the size of a message that it delivers without its payload. */
const SIZE_HEADER = "Nats-Msg-Size";

/** Messages of a shard in the snapshot stream: their bytes, by sequence. */
export type StoredBytes = ReadonlyMap<number, number>;

/** Time limit for listing a shard's messages without progress. */
const LIST_TIMEOUT_MS = 2_000;

/** Attempts to store the newest manifest again while others write manifests. */
const FENCE_TRIES_MAX = 24;

/** Error codes by which the broker says that a message to delete is gone already. */
const GONE: readonly number[] = [
  JETSTREAM_ERRORS.SEQUENCE_NOT_FOUND,
  JETSTREAM_ERRORS.MESSAGE_NOT_REMOVED,
  JETSTREAM_ERRORS.MESSAGE_NOT_FOUND,
];

/** Dependencies of {@link SnapshotStore}. */
export interface SnapshotStoreDeps extends SnapshotReaderDeps {
  readonly client: JetStreamClient;
  readonly publisher: StreamPublisher;
}

/** One shard's part of the snapshot stream of a job, for its owner. */
export class SnapshotStore extends SnapshotReader {
  readonly #deps: SnapshotStoreDeps;
  readonly #subjects: JobSubjects;
  readonly #shard: number;
  #stored = 0;

  constructor(deps: SnapshotStoreDeps) {
    super(deps);
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#shard = deps.shard;
  }

  /** How many messages this store has stored, manifests not counted. */
  get stored(): number {
    return this.#stored;
  }

  /** Stores one message; returns the reference to it. */
  async publish(subject: string, bytes: Uint8Array): Promise<PieceRef> {
    try {
      const seq = await this.#deps.publisher.publish(subject, bytes, STORE_TIMEOUT_MS);
      this.#stored += 1;
      return { seq, crc: readCrc(bytes) };
    } catch (error) {
      throw fromStoreError(error, `storing a snapshot of shard ${this.#shard}`, {
        shard: this.#shard,
      });
    }
  }

  /**
   * Writes a manifest after the one with sequence `previousSeq` (0: the first of the shard). Recognizes a write whose
   * answer was lost: this one, or an earlier one of the same owner.
   * @param ended asked before the write is repeated: returns why nothing may be written any more, because the owner
   * may have stored a later manifest.
   * @returns its sequence.
   * @throws NOT_OWNER if another owner has written since and so deposed this one; what `ended` returns.
   */
  async commit(
    manifest: Manifest,
    previousSeq: number,
    ended: () => PserverError | undefined = () => undefined,
  ): Promise<number> {
    const bytes = encodeManifest(manifest);
    const subject = this.#subjects.manifest(this.#shard);
    for (let expected = previousSeq; ; ) {
      try {
        const ack = await this.#deps.client.publish(subject, bytes, {
          timeout: STORE_TIMEOUT_MS,
          expect: { lastSubjectSequence: expected },
        });
        return ack.seq;
      } catch (error) {
        const stored = await this.message({ last_by_subj: subject });
        if (stored !== undefined && Buffer.compare(stored.data, bytes) === 0) return stored.seq;
        // A cluster refuses concurrent writes; here nobody has written yet.
        if (!isWrongSequence(error) || (stored?.seq ?? 0) === expected) {
          throw fromStoreError(error, `committing a snapshot of shard ${this.#shard}`, {
            shard: this.#shard,
          });
        }
        const last = stored && { seq: stored.seq, manifest: decodeManifest(stored.data) };
        if (last?.manifest.owner !== manifest.owner || last.seq <= expected) {
          throw this.#deposed(manifest, last?.manifest, error);
        }
        const reason = ended();
        if (reason !== undefined) throw reason;
        expected = last.seq;
      }
    }
  }

  /**
   * Stores the newest manifest again as it is, so that the broker refuses a write of whoever has read it before. Its
   * owner goes on after it: it is its own.
   * @returns it; undefined if there is none.
   * @throws JETSTREAM_UNAVAILABLE if others write all the time.
   */
  async fence(): Promise<StoredManifest | undefined> {
    const subject = this.#subjects.manifest(this.#shard);
    for (let tries = 1; ; tries++) {
      const newest = await this.message({ last_by_subj: subject });
      if (newest === undefined) return undefined;
      const expect = { lastSubjectSequence: newest.seq };
      try {
        const options = { timeout: STORE_TIMEOUT_MS, expect };
        const { seq } = await this.#deps.client.publish(subject, newest.data, options);
        return { seq, manifest: decodeManifest(newest.data) };
      } catch (error) {
        // Somebody else has written one: that one is fenced then.
        if (isWrongSequence(error) && tries < FENCE_TRIES_MAX) continue;
        throw fromStoreError(error, `fencing shard ${this.#shard}`, { shard: this.#shard });
      }
    }
  }

  #deposed(manifest: Manifest, last: Manifest | undefined, cause: unknown): PserverError {
    return new PserverError(
      "NOT_OWNER",
      `shard ${this.#shard}: host ${last?.host ?? "?"} has taken over under term ${last?.term ?? "?"}`,
      { shard: this.#shard, expected: manifest.term, received: last?.term },
      { cause },
    );
  }

  /** Lists all messages of the shard. */
  async list(): Promise<StoredBytes> {
    const { manager, client, subjects, shard } = this.#deps;
    const sizes = new Map<number, number>();
    const batches = readStream({
      ...{ manager, client, stream: subjects.snapshotStream() },
      select: { filter_subject: subjects.shardSnapshots(shard), headers_only: true },
      ...{ timeoutMs: LIST_TIMEOUT_MS, isLossy: true },
      ...{ action: `listing snapshots of shard ${shard}`, details: { shard } },
    });
    for await (const batch of batches) {
      for (const { seq, headers } of batch) sizes.set(seq, Number(headers?.get(SIZE_HEADER)));
    }
    return sizes;
  }

  /**
   * Checks that the limit of the snapshots has room for so many bytes more, and some for manifests: a shard cannot be
   * taken over without them.
   * @throws JOURNAL_FULL
   */
  async requireRoom(bytes: number): Promise<void> {
    const [stream, details] = [this.#subjects.snapshotStream(), { shard: this.#shard }];
    const { state, config } = await brokerCall("looking at the snapshots", details, () =>
      this.#deps.manager.streams.info(stream),
    );
    const room = config.max_bytes * (1 - MANIFESTS_SHARE) - state.bytes;
    if (bytes <= room) return;
    throw new PserverError(
      "JOURNAL_FULL",
      `storing a snapshot of shard ${this.#shard}: expected ${bytes} bytes of room in ${stream}; it holds ` +
        `${state.bytes} of at most ${config.max_bytes} bytes`,
      { ...details, expected: bytes, received: room },
    );
  }

  /** Deletes messages, without overwriting their bytes; those that are gone already count as deleted. */
  async remove(sequences: Iterable<number>): Promise<void> {
    const stream = this.#subjects.snapshotStream();
    for (const seq of sequences) {
      try {
        await this.#deps.manager.streams.deleteMessage(stream, seq, false);
      } catch (error) {
        if (!GONE.includes(jetStreamErrorCode(error))) {
          throw fromBrokerError(error, `deleting snapshot message ${seq}`, { shard: this.#shard });
        }
      }
    }
  }
}

/** How a new snapshot stream is made; the broker reserves `bytesMax` bytes for it. */
interface SnapshotStreamOptions {
  readonly replicas: number;
  readonly bytesMax: number;
  readonly metadata: Record<string, string>;
}

/** Creates the snapshot stream of a job unless it exists; returns the configuration of one that existed. */
export async function ensureSnapshotStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  { replicas, bytesMax, metadata }: SnapshotStreamOptions,
): Promise<StreamConfig | undefined> {
  const config = {
    name: subjects.snapshotStream(),
    subjects: [subjects.allSnapshots()],
    ...{ num_replicas: replicas, max_bytes: bytesMax, metadata },
  };
  return await brokerCall(`creating the snapshot stream of job ${subjects.job}`, {}, () =>
    ensureFileStream(manager, config),
  );
}

/** How many snapshots are always kept, because the newest may turn out to be damaged. */
const SNAPSHOTS_MIN = 2;

/** Share of its limit from which on a journal drops its history. */
export const HISTORY_SHARE = 0.75;

/** How many times the bytes to retain a journal may hold while an archiver has not copied what would be dropped. */
const HELD_FACTOR = 2;

/** The size of a journal and its limit. */
type JournalBytes = Pick<JournalInfo, "bytes" | "bytesMax">;

/**
 * Decides which snapshots of a shard are kept: the newest, older ones while the journal back to them fits into the
 * bytes to retain, and all of an abandoned journal that is kept as history. Does no I/O.
 */
export class KeptSnapshots {
  readonly #retainBytes: number;
  /** Kept snapshots, oldest first; all of one generation after {@link dropEarlierGenerations}. */
  #kept: StoredManifest[];
  /** Snapshots of the abandoned journal that is kept. */
  #past: StoredManifest[] = [];

  /** `kept` are all manifests in the store, oldest first. */
  constructor(retainBytes: number, kept: readonly StoredManifest[]) {
    this.#retainBytes = retainBytes;
    this.#kept = [...kept];
  }

  /** Generation of the newest snapshot; undefined without one. */
  get generation(): number | undefined {
    return this.#kept.at(-1)?.manifest.generation;
  }

  /** Sequence of the oldest state that can be restored and folded on; 0 without a snapshot. */
  get oldestSeq(): number {
    return this.#kept[0]?.manifest.seq ?? 0;
  }

  /**
   * Adds the newest snapshot. Drops those of an earlier generation, as no records follow them any more, unless the
   * snapshot says that their journal is kept.
   */
  add(snapshot: StoredManifest): void {
    this.#kept.push(snapshot);
    this.dropEarlierGenerations();
  }

  /** Replaces the manifest of the newest snapshot. */
  renew(newest: StoredManifest): void {
    this.#kept.splice(-1, 1, newest);
  }

  /** Keeps only this snapshot of the journal: it lies after a gap, and no older state can be folded across that. */
  restartAt(snapshot: StoredManifest): void {
    this.#kept = [snapshot];
  }

  /** Drops the snapshots of journals that were replaced and are not kept. */
  dropEarlierGenerations(): void {
    const { generation, past } = this.#kept.at(-1)?.manifest ?? {};
    const all = [...this.#past, ...this.#kept];
    this.#past = all.filter(({ manifest }) => manifest.generation === past);
    this.#kept = this.#kept.filter(({ manifest }) => manifest.generation === generation);
  }

  /**
   * Drops the oldest snapshot if the journal back to it is too large, and returns whether it did. Keeps what an
   * archiver has not copied yet, as long as the journal has at most twice the bytes to retain.
   */
  dropOldest(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean {
    const isNearLimit = nearsLimit(journal);
    const isTooMuch = isNearLimit || journal.bytes > this.#retainBytes;
    if (!isTooMuch || this.#kept.length <= (isNearLimit ? 1 : SNAPSHOTS_MIN)) return false;
    if (this.#mayWait(journal) && archived.some((copied) => this.#lacksOldest(copied)))
      return false;
    this.#kept.shift();
    return true;
  }

  /**
   * Drops the oldest snapshot if those that are kept take more bytes than they may, and returns whether it did. The
   * newest two are kept, or one if the stream is full: then the snapshots of an abandoned journal go first.
   */
  dropBeyond(stored: StoredBytes, bytesMax: number, isFull: boolean): boolean {
    if (isFull && this.#past.length > 0) {
      this.#past = [];
      return true;
    }
    if (this.#kept.length <= (isFull ? 1 : SNAPSHOTS_MIN)) return false;
    if (!isFull && this.#bytesOf(this.#kept, stored) <= bytesMax) return false;
    this.#kept.shift();
    return true;
  }

  #bytesOf(snapshots: readonly StoredManifest[], stored: StoredBytes): number {
    let bytes = 0;
    for (const seq of messagesOf(snapshots)) bytes += stored.get(seq) ?? 0;
    return bytes;
  }

  /**
   * Whether the records before the oldest snapshot stay because an archiver has not copied them; up to a journal of
   * the same size.
   */
  holdsBefore(journal: JournalBytes, archived: readonly ArchivedShard[]): boolean {
    const oldest = this.#kept[0]?.manifest;
    if (oldest === undefined || !this.#mayWait(journal)) return false;
    return archived.some(({ record }) => comparePositions(record, oldest) < 0);
  }

  /** Whether a journal is small enough to wait for archivers. */
  #mayWait(journal: JournalBytes): boolean {
    return !nearsLimit(journal) && journal.bytes <= HELD_FACTOR * this.#retainBytes;
  }

  /** Whether an archiver lacks something that would be dropped with the oldest snapshot. */
  #lacksOldest({ record, snapshot }: ArchivedShard): boolean {
    const [oldest, next] = this.#kept;
    if (oldest === undefined || next === undefined) return false;
    const { generation, seq } = next.manifest;
    // The record of the next snapshot stays, as that one is then the oldest.
    return (
      comparePositions(snapshot, oldest.manifest) < 0 ||
      comparePositions(record, { generation, seq: seq - 1 }) < 0
    );
  }

  /**
   * Finds the shard's stored messages that are older than the newest snapshot and that no kept snapshot needs, the
   * newest first: so a manifest is removed before what it names, also if the host crashes in between.
   */
  unneeded(stored: StoredBytes): number[] {
    const needed = messagesOf([...this.#past, ...this.#kept]);
    const newest = this.#kept.at(-1)?.seq ?? 0;
    const sequences = [...stored.keys()].filter((seq) => seq < newest && !needed.has(seq));
    return sequences.sort((a, b) => b - a);
  }
}

/** Returns the sequences of all messages of these snapshots. */
function messagesOf(snapshots: readonly StoredManifest[]): Set<number> {
  const sequences = new Set<number>();
  for (const { seq, manifest } of snapshots) {
    sequences.add(seq);
    for (const piece of manifest.state) sequences.add(piece.seq);
    for (const piece of manifest.pieces) sequences.add(piece);
  }
  return sequences;
}

function nearsLimit({ bytes, bytesMax }: JournalBytes): boolean {
  return bytesMax > 0 && bytes > HISTORY_SHARE * bytesMax;
}
