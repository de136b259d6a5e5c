import {
  asMap,
  decodeMessage,
  encodeAnswers,
  encodeMessage,
  encodeStepReply,
  ensureError,
  type Fallback,
  type Fields,
  fallbacksSince,
  integerField,
  listField,
  type Outcome,
  type Position,
  PserverError,
  PULL_WAIT_MS_MAX,
  parseOutcomeRequest,
  parsePosition,
  parseShardVersionsRequest,
  parseStepRequest,
  parseTrainersRequest,
  shardVersionsReply,
  TRAINERS_PER_MESSAGE_MAX,
  textField,
  trainersReply,
  WAITING_FOR_MAX,
} from "../../protocol/index.ts";
import type { BlockName } from "../fold/block-actor.ts";
import { blockDigest, type Shard, stateDigest } from "../fold/shard.ts";
import { type PositionQueue, ReadConditions, type StepQueue } from "./pending-reads.ts";
import { ServedValues } from "./reads.ts";
import type { Asker, MakeReply, Responder } from "./responder.ts";
import { shardVersions } from "./shard-status.ts";
import type { RequestHandler } from "./subscriptions.ts";

/** Limit of the blocks in one `check`; longer lists are sent in parts. */
const CHECK_BLOCKS_MAX = 16_384;

/** Dependencies of {@link ServedRequests}. */
export interface ServedRequestsDeps {
  /** Number of the shard. */
  readonly number: number;
  readonly shard: Shard;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  readonly responder: Responder;
  /** Position of the fold. */
  readonly position: () => Position;
  /** What the shard lost of journals that were replaced. */
  readonly fallbacks: () => readonly Fallback[];
  /** Makes a snapshot of this position or later unless there is one. */
  readonly snapshot: (at: Position) => Promise<Fields>;
  readonly status: () => Fields;
  /** Free memory of the host. */
  readonly memory: () => Fields;
}

/** Answers the requests to a shard that is served. */
export class ServedRequests implements RequestHandler {
  readonly #deps: ServedRequestsDeps;
  readonly #conditions: ReadConditions;
  readonly #values: ServedValues;

  constructor(deps: ServedRequestsDeps) {
    this.#deps = deps;
    this.#conditions = new ReadConditions(deps);
    this.#values = new ServedValues({ ...deps, conditions: this.#conditions });
  }

  pull(bytes: Uint8Array, asker: Asker, block: BlockName): void {
    const { fields, data } = decodeMessage(bytes);
    this.#values.pull(asker, block, fields, data);
  }

  read(bytes: Uint8Array, asker: Asker): void {
    this.#values.read(asker, bytes);
  }

  outcome(data: Uint8Array, asker: Asker): void {
    const { number, shard, position, fallbacks, responder } = this.#deps;
    const request = parseOutcomeRequest(decodeMessage(data).fields);
    const { session } = request;
    const answer = (): void =>
      this.#respond(asker, () => {
        const { generation } = position();
        const outcomes = shard.outcomes(asker.from, request);
        const answers = { shard: number, generation, session, outcomes };
        if (request.generation >= generation) {
          return encodeAnswers(answers, responder.payloadBytesMax);
        }
        const lost = {
          outcomes: outcomes.map(lostIfUnseen),
          fallbacks: fallbacksSince(fallbacks(), request.generation),
        };
        return encodeAnswers({ ...answers, ...lost }, responder.payloadBytesMax);
      });
    this.#conditions.afterPosition(
      asker,
      { ...request, waitMs: PULL_WAIT_MS_MAX },
      answer,
      (error) => {
        // Outcomes of a replaced journal stay known if they were folded; all others are lost for good.
        if (error.code === "JOURNAL_REPLACED") answer();
        else responder.refuse(asker, error);
      },
    );
  }

  step(data: Uint8Array, asker: Asker): void {
    const { shard, position, responder } = this.#deps;
    const request = parseStepRequest(decodeMessage(data).fields);
    const { revision, step } = request;
    const answer = (): void =>
      this.#respond(asker, () =>
        encodeStepReply({
          ...position(),
          revision: shard.steps.revision,
          step: shard.steps.closed,
          waitingFor: shard.steps.waitingFor(WAITING_FOR_MAX),
        }),
      );
    const wanted = { revision, step, trainer: asker.from, isRead: false };
    this.#conditions.afterStep(asker, request, wanted, answer, (error) =>
      responder.refuse(asker, error),
    );
  }

  ownerVerb(bytes: Uint8Array, asker: Asker, verb: string): void {
    const { shard, responder, status, memory, snapshot } = this.#deps;
    const { fields, data } = decodeMessage(bytes);
    const reply = (entries: () => Fields): void =>
      this.#respond(asker, () => encodeMessage(entries()));
    const afterPosition = (entries: () => Fields): void => {
      const request = { ...parsePosition(fields), waitMs: PULL_WAIT_MS_MAX };
      const answer = (): void => reply(entries);
      this.#conditions.afterPosition(asker, request, answer, (error) =>
        responder.refuse(asker, error),
      );
    };
    if (verb === "pull") {
      const parameter = textField(fields, "parameter");
      const index = integerField(fields, "index");
      this.#values.pull(asker, { parameter, index }, fields, data);
    } else if (verb === "check") {
      const wanted = listField(fields, "blocks", CHECK_BLOCKS_MAX);
      afterPosition(() => this.#check(wanted));
    } else if (verb === "digest") {
      afterPosition(() => this.#digest(fields));
    } else if (verb === "status") {
      reply(() => ({ status: status() }));
    } else if (verb === "memory") {
      reply(memory);
    } else if (verb === "versions") {
      const wanted = parseShardVersionsRequest(fields);
      reply(() => shardVersionsReply(shardVersions(shard, wanted)));
    } else if (verb === "trainers") {
      const after = parseTrainersRequest(fields);
      reply(() => {
        const trainers = shard.trainers.after(after, TRAINERS_PER_MESSAGE_MAX);
        return trainersReply({ trainers, toldUpTo: shard.trainers.floor });
      });
    } else if (verb === "snapshot") {
      snapshot(parsePosition(fields)).then(
        (entries) => reply(() => entries),
        (error: unknown) => responder.refuse(asker, ensureError(error)),
      );
    } else {
      throw new PserverError("BAD_MESSAGE", `no request to an owner: ${verb}`);
    }
  }

  /** Those of the wanted blocks that are missing or of another epoch. */
  #check(wanted: readonly unknown[]): Fields {
    const { shard, position } = this.#deps;
    const missing: [string, number][] = [];
    for (const value of wanted) {
      const row = Array.isArray(value) ? (value as unknown[]) : [];
      const fields = asMap({ parameter: row[0], index: row[1], epoch: row[2] }, "block");
      const parameter = textField(fields, "parameter");
      const index = integerField(fields, "index");
      const block = shard.block(parameter, index);
      if (block?.epoch !== integerField(fields, "epoch", 1)) missing.push([parameter, index]);
    }
    return { ...position(), missing };
  }

  /** Digest of the block that a request names, null if there is none; of the state without values if it names none. */
  #digest(fields: Fields): Fields {
    const { shard, position } = this.#deps;
    if (fields["parameter"] === undefined) return { ...position(), digest: stateDigest(shard) };
    const block = shard.block(textField(fields, "parameter"), integerField(fields, "index"));
    return { ...position(), digest: block === undefined ? null : blockDigest(block) };
  }

  #respond(asker: Asker, make: MakeReply): void {
    this.#deps.responder.respond(asker, make);
  }
}

/** The outcome of a record in a replaced journal, which is lost unless it was folded. */
function lostIfUnseen(outcome: Outcome): Outcome {
  if (outcome.code !== "BAD_CHECKSUM") return outcome;
  const message = "the record was stored in a journal that was lost before it was folded";
  return { ...outcome, code: "JOURNAL_REPLACED", message };
}
