import { decodeMessage, encodeMessage, type Message } from "../../../protocol/codec.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { type Contribution, parseContribution } from "../../../protocol/messages/contributions.ts";

/** A contribution of which some parts have not come yet. */
interface OpenContribution {
  readonly session: number;
  readonly contribution: Contribution;
  /** The parts as messages, by their numbers. */
  readonly parts: Map<number, Uint8Array>;
  bytes: number;
}

/** How many bytes of contributions a shard may keep, and how many the rounds of its fragments keep. */
export interface KeptLimits {
  readonly bytesMax: number;
  readonly roundBytes: number;
}

const NO_LIMITS: KeptLimits = { bytesMax: Number.MAX_SAFE_INTEGER, roundBytes: 0 };

/** Copies a part as it is kept: its elements stay encoded. */
export function encodePart(contribution: Contribution, { fields, data }: Message): Uint8Array {
  return encodeMessage({ contribution: { ...contribution }, runs: fields["runs"] }, data);
}

/** An open contribution in a saved state; the parts are in the order of their numbers. */
export type OpenContributionRow = readonly [
  trainer: string,
  session: number,
  parts: readonly Uint8Array[],
];

/**
 * Keeps the parts of contributions that are not complete, encoded as they came: at most one contribution of each
 * session. A part of a newer one takes the place of the older one, which its sender has given up.
 */
export class OpenContributions {
  readonly #open: Map<string, OpenContribution> = new Map();
  #bytes = 0;

  /** Bytes of all parts. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Passes if a part can be kept: it belongs to a contribution that is not older than the open one of its session, says
   * the same as the other parts, and did not come before. Changes nothing.
   * `bytes`: what is to be kept of the part; `limits`: the bytes that the shard may keep, and has in rounds.
   * @throws LATE for an older contribution, BAD_VALUE for another statement, BAD_INDEX for a part that is here; BUSY as
   * {@link checkRoom}.
   */
  check(
    trainer: string,
    session: number,
    contribution: Contribution,
    bytes: number,
    limits: KeptLimits,
  ): void {
    const open = this.#of(trainer, session);
    const isSame = open?.contribution.id === contribution.id;
    if (open !== undefined && open.contribution.id > contribution.id) {
      const { id } = open.contribution;
      const text = `contribution: expected number ${id}, which has begun, or a later one; received ${contribution.id}`;
      throw new PserverError("LATE", text);
    }
    if (isSame) checkSame(open.contribution, contribution);
    if (isSame && open.parts.has(contribution.part)) {
      const text = `part: expected each once; received ${contribution.part} again`;
      throw new PserverError("BAD_INDEX", text);
    }
    this.checkRoom(trainer, (isSame ? open.bytes : 0) + bytes, limits);
  }

  /**
   * Passes if a trainer's contribution of so many bytes can be kept in place of what the trainer has here.
   * @throws BUSY if the shard would keep more than `bytesMax` bytes, or the trainer more than are left for others.
   */
  checkRoom(trainer: string, bytes: number, { bytesMax, roundBytes }: KeptLimits): void {
    const replaced = this.#open.get(trainer)?.bytes ?? 0;
    const others = this.#bytes - replaced + roundBytes;
    if (bytes <= bytesMax - others - bytes) return;
    throw new PserverError(
      "BUSY",
      `contribution: expected at most ${Math.max(0, Math.floor((bytesMax - others) / 2))} bytes to keep, because the ` +
        `shard keeps ${others} bytes of others; received ${bytes}`,
    );
  }

  /** Keeps a part, as {@link encodePart} returned it, that {@link check} passed. */
  add(trainer: string, session: number, contribution: Contribution, part: Uint8Array): void {
    let open = this.#of(trainer, session);
    if (open?.contribution.id !== contribution.id) {
      this.drop(trainer);
      open = { session, contribution, parts: new Map(), bytes: 0 };
      this.#open.set(trainer, open);
    }
    open.parts.set(contribution.part, part);
    open.bytes += part.length;
    this.#bytes += part.length;
  }

  /** Whether all parts but this one are here. */
  isLast(trainer: string, session: number, { id, parts }: Contribution): boolean {
    const open = this.#of(trainer, session);
    return open?.contribution.id === id && open.parts.size === parts - 1;
  }

  /** Returns the parts that are here, in the order of their numbers. */
  partsOf(trainer: string): { readonly part: number; readonly bytes: Uint8Array }[] {
    const parts = [...(this.#open.get(trainer)?.parts ?? [])].sort(([a], [b]) => a - b);
    return parts.map(([part, bytes]) => ({ part, bytes }));
  }

  /** Drops the open contribution of a trainer, if it is of this number; any if none is given. */
  drop(trainer: string, id?: number): void {
    const open = this.#open.get(trainer);
    if (open === undefined || (id !== undefined && open.contribution.id !== id)) return;
    this.#open.delete(trainer);
    this.#bytes -= open.bytes;
  }

  /** Drops the open contributions to a fragment. */
  dropOf(fragment: string): void {
    for (const [trainer, { contribution }] of this.#open) {
      if (contribution.fragment === fragment) this.drop(trainer);
    }
  }

  /** Drops the open contribution of a trainer unless it is of this session or a later one. */
  keepSession(trainer: string, session: number): void {
    const open = this.#open.get(trainer);
    if (open !== undefined && open.session < session) this.drop(trainer);
  }

  /** Keeps only the contributions of sessions that pass. */
  keep(passes: (trainer: string, session: number) => boolean): void {
    for (const [trainer, { session }] of this.#open) {
      if (!passes(trainer, session)) this.drop(trainer);
    }
  }

  /** Returns the rows to save, by trainer. */
  save(): OpenContributionRow[] {
    const sorted = [...this.#open].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([trainer, { session, parts }]) => {
      const inOrder = [...parts].sort(([a], [b]) => a - b);
      return [trainer, session, inOrder.map(([, bytes]) => bytes)];
    });
  }

  /** Restores a row. @throws BAD_MESSAGE and the like if no records lead to it. */
  restore([trainer, session, parts]: OpenContributionRow): void {
    for (const bytes of parts) {
      const contribution = parseContribution(decodeMessage(bytes).fields);
      this.check(trainer, session, contribution, bytes.length, NO_LIMITS);
      this.add(trainer, session, contribution, bytes);
    }
  }

  #of(trainer: string, session: number): OpenContribution | undefined {
    const open = this.#open.get(trainer);
    return open?.session === session ? open : undefined;
  }
}

/** @throws BAD_VALUE unless two parts of a contribution say the same. */
function checkSame(first: Contribution, other: Contribution): void {
  for (const key of ["fragment", "base", "steps", "tokens", "form", "parts"] as const) {
    if (first[key] === other[key]) continue;
    throw new PserverError(
      "BAD_VALUE",
      `${key}: expected ${first[key]} as in the other parts of contribution ${first.id}; received ${other[key]}`,
    );
  }
}
