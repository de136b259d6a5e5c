import type { Fallback, Fields, Position, PserverError } from "../../protocol/index.ts";
import type { Settled, Shard } from "../fold/shard.ts";
import type { Head } from "../journal/head-mark.ts";
import { majorityLastSeq } from "../journal/journal.ts";
import { JournalHead, lastRecordSeq } from "../journal/journal-check.ts";
import { JournalReader } from "../journal/journal-reader.ts";
import { type TapeGaps, TapeWriter } from "../journal/tape-writer.ts";
import { ServedRequests } from "./answers.ts";
import { FoldLoop } from "./fold-loop.ts";
import { type LocatedJournal, OwnedJournal } from "./owned-journal.ts";
import { PositionQueue, StepQueue, type WantedPosition } from "./pending-reads.ts";
import type { RecoveredShard } from "./recover-shard.ts";
import { OutgoingAnswers } from "./responder.ts";
import type { ShardOwnerDeps } from "./shard-owner.ts";
import { ShardSnapshots } from "./shard-snapshots.ts";
import { shardUpdates } from "./shard-status.ts";
import { refusingHandler, ShardRequests } from "./subscriptions.ts";

/** How long a shard that is saved waits for its fold before it looks for the end of the journal again. */
const FOLD_WAIT_MS = 2_000;

/** Dependencies of a shard that is served. */
export interface ServingDeps extends ShardOwnerDeps {
  /** Token of this take-over. */
  readonly owner: string;
  /** Whether the host has the memory for the blocks folded while catching up. */
  readonly fits: (shard: Shard) => boolean;
  /** Whether the lease is held, and no other host can have owned the shard since it was taken over. */
  readonly mayAnswer: () => boolean;
  /** Called when the shard has caught up and answers. */
  readonly onServing: () => void;
  readonly onFailure: (error: PserverError) => void;
  readonly onLost: (error: PserverError, wanted: WantedPosition) => void;
  /** The reply to `status`. */
  readonly status: () => Fields;
}

/** Parts of a {@link ServingShard}. */
export interface ServingParts {
  readonly deps: ServingDeps;
  readonly shard: Shard;
  readonly core: OwnerCore;
  readonly journal: OwnedJournal;
  readonly snapshots: ShardSnapshots;
  readonly requests: ShardRequests;
  readonly loop: FoldLoop;
  readonly tape: TapeWriter | undefined;
}

/** A shard that was recovered and is served: it folds, answers requests and makes snapshots. */
export class ServingShard {
  readonly shard: Shard;
  readonly #deps: ServingDeps;
  readonly #core: OwnerCore;
  readonly #journal: OwnedJournal;
  readonly #snapshots: ShardSnapshots;
  readonly #requests: ShardRequests;
  readonly #loop: FoldLoop;
  readonly #tape: TapeWriter | undefined;
  readonly #answers: OutgoingAnswers;
  #isStopped = false;
  #hasFoldEnded = false;
  /** Records of trainers rejected since it serves. */
  #rejected = 0;

  constructor(parts: ServingParts) {
    const { deps } = parts;
    this.shard = parts.shard;
    this.#deps = deps;
    this.#core = parts.core;
    this.#journal = parts.journal;
    this.#snapshots = parts.snapshots;
    this.#requests = parts.requests;
    this.#loop = parts.loop;
    this.#tape = parts.tape;
    this.#answers = new OutgoingAnswers(deps.dataConnection, deps.shard);
  }

  /** Starts to fold; `onServing` is called when it has caught up. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Reads the journal anew after the connection was lost. */
  async reconnected(): Promise<void> {
    this.#snapshots.abort();
    await this.#loop.reconnected();
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#core.isServing && !this.#isStopped;
  }

  /** Position of the fold. */
  get position(): Position {
    return { generation: this.#snapshots.newest?.manifest.generation ?? 0, seq: this.shard.seq };
  }

  /** What the shard lost of journals that were replaced. */
  get fallbacks(): readonly Fallback[] {
    return this.#snapshots.newest?.manifest.fallbacks ?? [];
  }

  /** The last record folded; undefined if the fold does not end with a record. */
  get head(): Head | undefined {
    const manifest = this.#snapshots.newest?.manifest;
    const { noted, lastCrc: recordCrc, endsWithRecord } = this.shard;
    if (manifest === undefined || !endsWithRecord) return undefined;
    const { term, generation } = manifest;
    return { term, generation, ...noted, recordCrc };
  }

  /** Its part of the reply to `status`. */
  status(): Fields {
    const manifest = this.#snapshots.newest?.manifest;
    return {
      ...this.position,
      term: manifest?.term ?? 0,
      snapshotSeq: manifest?.seq ?? 0,
      oldestSeq: this.#snapshots.oldestSeq,
      blocks: [...this.shard.blocks()].length,
      valueBytes: this.shard.valueBytes,
      updates: { applied: shardUpdates(this.shard), refused: this.#rejected },
      journalBytes: this.#snapshots.journalBytes,
      ...(this.#tape && { tape: this.#tapeGaps(this.#tape.gaps) }),
    };
  }

  #tapeGaps({ undescribed, leftOut }: TapeGaps): TapeGaps {
    return { undescribed, leftOut: leftOut + this.shard.unobserved };
  }

  /** Requests that were not answered because their reply subject was outside the asker's inbox. */
  get refusedRequests(): number {
    return this.#requests.refused;
  }

  /** Makes a snapshot of `at` or later unless there is one. */
  async snapshot(at: Position): Promise<Fields> {
    const { manifest } = await this.#snapshots.make(at);
    return { shard: this.#deps.shard, generation: manifest.generation, seq: manifest.seq };
  }

  /**
   * Folds up to the end that the journal has now, then nothing more, and makes a snapshot of that. Reads are still
   * answered.
   * @throws TIMEOUT while the fold has not come so far.
   */
  async save(): Promise<void> {
    // What came since the fold has ended is never folded.
    if (!this.#hasFoldEnded) await this.#foldToEnd();
    this.#hasFoldEnded = true;
    this.#loop.stop();
    await this.#snapshots.make(this.position);
  }

  async #foldToEnd(): Promise<void> {
    const { journal, host } = this.#deps;
    const { generation } = this.position;
    const info = await journal.info(generation);
    const seq = info === undefined ? 0 : lastRecordSeq(info);
    await new Promise<void>((resolve, reject) => {
      const wanted = { generation, seq, asker: host };
      const read = { from: host, wanted, waitMs: FOLD_WAIT_MS, run: resolve, refuse: reject };
      this.#core.positions.at(this.position, read);
    });
  }

  /** Has the broker confirm that no other host has taken the shard over. @throws NOT_OWNER if one has. */
  async confirm(): Promise<void> {
    await this.#snapshots.renew();
  }

  /** Stops folding and making snapshots. */
  stop(): void {
    this.#isStopped = true;
    this.#loop.stop();
    this.#journal.close();
    this.#snapshots.close();
    this.#tape?.close();
    this.#answers.clear();
  }

  /** Refuses pending requests, and further ones by {@link ShardRequests.openFailed}. */
  fail(error: () => PserverError): void {
    this.#core.refuseAll(error());
    this.#requests.openFailed(refusingHandler(error));
  }

  /** Refuses pending requests and receives no further ones. */
  close(error: PserverError): void {
    this.#requests.close();
    this.#core.refuseAll(error);
  }

  /** Folds what had to wait. */
  poke(): void {
    this.#loop.poke();
  }

  /** Whether the host has the memory for the shard; asked only while it catches up. */
  fits(): boolean {
    return this.#core.isServing || this.#deps.fits(this.shard);
  }

  /** Says where the journal continues. */
  async locate(): Promise<LocatedJournal> {
    const place = await this.#journal.locate();
    this.#catchUp();
    return place;
  }

  /** Takes the answer to a record that was folded. */
  settled(settled: Settled): void {
    if (!this.isServing) return;
    this.#answers.add(settled);
    if (settled.outcome.code !== undefined) this.#rejected += 1;
  }

  /** Answers after records with so many bytes in the journal were folded. */
  advanced(bytes: number): void {
    if (this.#isStopped) return;
    this.#catchUp();
    if (this.#deps.mayAnswer()) this.#answers.flush(this.position.generation);
    else this.#answers.clear();
    this.#core.advanced(this.position);
    this.#snapshots.advanced(bytes, this.shard.isCompared);
  }

  /** Answers pending requests after a gap was skipped or the journal was replaced. */
  positionChanged(): void {
    this.#core.positions.advance(this.position);
  }

  #catchUp(): void {
    if (this.#isStopped || !this.#core.catchUp()) return;
    this.#requests.open(this.shard.blocks());
    this.#deps.onServing();
  }
}

/**
 * Decides when the owner of a shard answers. Does no I/O.
 *
 * While it catches up with the head of the journal at take-over it answers nothing: the senders of
 * these records were answered by former owners, or ask.
 */
export class OwnerCore {
  readonly shard: Pick<Shard, "seq" | "steps">;
  readonly head: JournalHead;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  #isServing = false;

  constructor(parts: Pick<OwnerCore, "shard" | "head" | "positions" | "steps">) {
    this.shard = parts.shard;
    this.head = parts.head;
    this.positions = parts.positions;
    this.steps = parts.steps;
  }

  /** Whether it has caught up and answers. */
  get isServing(): boolean {
    return this.#isServing;
  }

  /** Starts to serve if the fold has reached the head of the journal; whether it did just now. */
  catchUp(): boolean {
    if (this.#isServing || this.shard.seq < this.head.seq) return false;
    this.#isServing = true;
    return true;
  }

  /** Answers pending requests after records have been folded or skipped. */
  advanced(position: Position): void {
    this.positions.advance(position);
    this.steps.advance();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.positions.refuseAll(error);
    this.steps.refuseAll(error);
  }
}

/** The shard that is being composed: its parts call it only once it is there. */
type Composed = () => ServingShard;

/**
 * Prepares a recovered shard for serving: connects its parts, removes what the former owner has left
 * and creates the journal of a new shard. {@link ServingShard.start} follows.
 */
export async function serveShard(
  deps: ServingDeps,
  recovered: RecoveredShard,
): Promise<ServingShard> {
  const { host, owner, journal, journalStorage: storage, marks } = deps;
  const { shard } = recovered;
  const composed: Composed = () => serving;
  const head = new JournalHead(deps.shard);
  const tape = makeTape(deps, shard, composed);
  await tape?.open();
  const snapshots = new ShardSnapshots({
    ...deps,
    recovered,
    tape,
    kept: await deps.store.manifests(),
    onProgress: () => serving.poke(),
    onDeposed: deps.onFailure,
  });
  const owned = new OwnedJournal({
    ...{ host, owner, journal, storage, shard, snapshots, marks, head },
    onReplaced: () => serving.positionChanged(),
    onFellBack: deps.onFellBack,
    onGapRemains: deps.onSnapshotFailed,
  });
  const positions = makePositions(deps, composed);
  const steps = new StepQueue(deps.shard);
  const core = new OwnerCore({ shard, head, positions, steps });
  const requests = makeRequests(deps, { shard, positions, steps }, composed);
  const loop = makeLoop(deps, { shard, snapshots, tape, journal: owned }, composed);
  const serving = new ServingShard({
    ...{ deps, shard, core, journal: owned, snapshots, requests, loop, tape },
  });
  observe({ shard, requests, snapshots, tape });
  await snapshots.tidy();
  if (recovered.manifest === undefined) await owned.replace();
  return serving;
}

/** What writes the tape of the shard; undefined if its job has none. */
function makeTape(
  { shard, tape: store, onTapeFailed: onFailed, onTapeIncomplete: onIncomplete }: ServingDeps,
  folded: Shard,
  composed: Composed,
): TapeWriter | undefined {
  if (store === undefined) return undefined;
  return new TapeWriter({
    ...{ store, shard, folded },
    generation: () => composed().position.generation,
    onProgress: () => composed().poke(),
    ...{ onFailed, onIncomplete },
  });
}

function makePositions({ shard, journal, onLost }: ServingDeps, composed: Composed): PositionQueue {
  return new PositionQueue({
    shard,
    fallbacks: () => composed().fallbacks,
    lastSeq: (wanted, tell) => {
      majorityLastSeq(journal, wanted).then(tell, () => tell(undefined));
    },
    onLost,
  });
}

function makeRequests(
  deps: ServingDeps,
  { shard, positions, steps }: { shard: Shard; positions: PositionQueue; steps: StepQueue },
  composed: Composed,
): ShardRequests {
  const { host, memory, responder, status, shard: number } = deps;
  return new ShardRequests(
    { ...deps, connection: deps.dataConnection },
    new ServedRequests({
      ...{ number, shard, positions, steps, responder, status },
      position: () => composed().position,
      fallbacks: () => composed().fallbacks,
      snapshot: (at) => composed().snapshot(at),
      memory: () => ({ host, freeBytes: Math.max(0, Math.floor(memory.freeBytes)) }),
    }),
  );
}

function makeLoop(
  deps: ServingDeps,
  { shard, snapshots, tape, journal }: Omit<ServingParts, "deps" | "core" | "requests" | "loop">,
  composed: Composed,
): FoldLoop {
  return new FoldLoop({
    number: deps.shard,
    shard,
    reader: new JournalReader({ ...deps, connection: deps.journalConnection }),
    pace: deps.pace,
    events: {
      locate: () => composed().locate(),
      mayFold: () => !snapshots.holdsUp && tape?.holdsUp !== true && composed().fits(),
      onSettled: (settled) => composed().settled(settled),
      onAdvanced: (bytes) => composed().advanced(bytes),
      onGap: async (gap) => {
        await journal.skipGap(gap);
        composed().positionChanged();
      },
      onFailure: deps.onFailure,
    },
  });
}

/** Lets the parts know what the fold does. */
function observe({
  shard,
  requests,
  snapshots,
  tape,
}: Pick<ServingParts, "shard" | "requests" | "snapshots" | "tape">): void {
  shard.observer = tape;
  shard.hooks = {
    blockAdded: (block) => requests.blockAdded(block),
    blockRemoved: (block) => {
      requests.blockRemoved(block);
      snapshots.blockRemoved(block);
    },
    beforeChange: (block) => snapshots.beforeChange(block),
  };
}
