/** How long nobody has asked anything of a worker until its snapshots are stored as fast as they can be. */
const QUIET_MS = 20;

/**
 * Returns the part of the growth of its shard's journal by which a cut must be stored that has come: from 0, when it
 * became due, to 1.
 */
export type PutOff = () => number;

/** For a cut that somebody waits for. */
export const AT_ONCE: PutOff = () => 1;

/** A cut in the order of all cuts of a worker. */
export interface CutTurn {
  /** Cuts that had ended when it joined. */
  readonly endedBefore: number;
  /** Cuts that were before it then. */
  readonly ahead: number;
  readonly putOff: PutOff;
}

/** A piece that waits. */
interface WaitingPiece {
  readonly bytes: number;
  readonly admit: () => void;
}

/** Dependencies of {@link SnapshotPace}. */
interface SnapshotPaceDeps {
  /** Whether records wait until pieces are stored. */
  readonly holdsUp: () => boolean;
  /** In milliseconds, of a clock that does not go back. */
  readonly nowMs?: () => number;
}

/**
 * Decides when the pieces of a worker's snapshots are stored, so that steps of trainers do not wait for them. While
 * trainers ask something of the worker, the cuts make only as much progress as the growth of the journals demands: each
 * is stored by the time when its shard's journal has grown by what it may be put off. Nothing is put off once nobody
 * asks, or while records wait for the copies of a cut.
 */
export class SnapshotPace {
  readonly #holdsUp: () => boolean;
  readonly #nowMs: () => number;
  /** Turns that have not ended, in order: the first one's cut is being stored. */
  readonly #turns: CutTurn[] = [];
  readonly #waiting: WaitingPiece[] = [];
  #ended = 0;
  /** Bytes of the first turn's cut, and how many of them were admitted. */
  #bytes = 0;
  #admittedBytes = 0;
  #workedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor({ holdsUp, nowMs = () => performance.now() }: SnapshotPaceDeps) {
    this.#holdsUp = holdsUp;
    this.#nowMs = nowMs;
  }

  /** Puts a cut at the end of the order. */
  join(putOff: PutOff): CutTurn {
    const turn = { endedBefore: this.#ended, ahead: this.#turns.length, putOff };
    this.#turns.push(turn);
    this.poke();
    return turn;
  }

  /** Notes how many bytes the cut has that is being stored. */
  begin(bytes: number): void {
    this.#bytes = bytes;
  }

  /** Ends the first turn, stored or not, and lets pieces go that still wait: whoever waits for them must look. */
  leave(turn: CutTurn): void {
    this.#turns.splice(this.#turns.indexOf(turn), 1);
    this.#ended += 1;
    this.#bytes = 0;
    this.#admittedBytes = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { admit } of this.#waiting.splice(0)) admit();
  }

  /** Waits, in order, until a piece of so many bytes may be stored. */
  admit(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ bytes, admit: resolve });
      this.poke();
    });
  }

  /** Notes that records were folded, or a request was worked on. */
  worked(): void {
    this.#workedAtMs = this.#nowMs();
  }

  /** Admits what may go now; must be called when a journal has grown, or what may be put off has changed. */
  poke(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#mayGo) break;
      this.#waiting.shift();
      this.#admittedBytes += next.bytes;
      next.admit();
    }
    if (this.#waiting.length > 0) this.#watch();
  }

  get #mayGo(): boolean {
    if (this.#quietMs >= QUIET_MS || this.#holdsUp()) return true;
    const made = this.#ended + (this.#bytes === 0 ? 0 : this.#admittedBytes / this.#bytes);
    return this.#turns.some(({ endedBefore, ahead, putOff }) => {
      return made < endedBefore + (ahead + 1) * Math.min(1, putOff());
    });
  }

  get #quietMs(): number {
    return this.#nowMs() - this.#workedAtMs;
  }

  /** Looks again when nobody may have asked for long enough. */
  #watch(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.poke();
      },
      Math.max(1, QUIET_MS - this.#quietMs),
    );
  }
}
