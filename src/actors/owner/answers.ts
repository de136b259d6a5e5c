import {
  asMap,
  decodeMessage,
  encodeAnswers,
  encodeFragmentsReply,
  encodeMessage,
  encodeStepReply,
  ensureError,
  type Fields,
  type FragmentRow,
  fallbacksSince,
  integerField,
  knowledgeReply,
  listField,
  type Outcome,
  PserverError,
  PULL_WAIT_MS_MAX,
  parametersPerRequest,
  parseFragmentsRequest,
  parseKnowledgeRequest,
  parseOutcomeRequest,
  parsePosition,
  parseShardVersionsRequest,
  parseStepRequest,
  parseTrainersRequest,
  type ShardVersions,
  shardVersionsReply,
  TRAINERS_PER_MESSAGE_MAX,
  textField,
  trainersReply,
  WAITING_FOR_MAX,
  type WantedVersions,
} from "../../protocol/index.ts";
import type { BlockName } from "../fold/block-actor.ts";
import { blockDigest, type Shard, stateDigest } from "../fold/shard.ts";
import type { OwnerCounters } from "./owner-counters.ts";
import { type AnsweredShard, ReadConditions } from "./pending-reads.ts";
import { ServedValues } from "./reads.ts";
import type { Asker, MakeReply, Responder } from "./responder.ts";
import type { RequestHandler } from "./subscriptions.ts";

/** Limit of the blocks in one `check`; longer lists are sent in parts. */
const CHECK_BLOCKS_MAX = 16_384;

/** Answers the requests to a shard that is served. */
export class ShardAnswers implements RequestHandler {
  readonly #served: AnsweredShard;
  readonly #responder: Responder;
  readonly #conditions: ReadConditions;
  readonly #values: ServedValues;

  constructor(served: AnsweredShard, responder: Responder, counters: OwnerCounters) {
    this.#served = served;
    this.#responder = responder;
    this.#conditions = new ReadConditions(served, counters);
    this.#values = new ServedValues(served, this.#conditions, { responder, counters });
  }

  pull(bytes: Uint8Array, asker: Asker, block: BlockName): void {
    const { fields, data } = decodeMessage(bytes);
    this.#values.pull(asker, block, fields, data);
  }

  read(bytes: Uint8Array, asker: Asker): void {
    this.#values.read(asker, bytes);
  }

  outcome(data: Uint8Array, asker: Asker): void {
    const { number, shard } = this.#served;
    const request = parseOutcomeRequest(decodeMessage(data).fields);
    const { session } = request;
    const answer = (): void =>
      this.#respond(asker, () => {
        const { position, fallbacks } = this.#served;
        const { generation } = position;
        const outcomes = shard.outcomes(asker.from, request);
        const answers = { shard: number, generation, session, outcomes };
        if (request.generation >= generation) {
          return encodeAnswers(answers, this.#responder.payloadBytesMax);
        }
        const lost = {
          outcomes: outcomes.map(lostIfUnseen),
          fallbacks: fallbacksSince(fallbacks, request.generation),
        };
        return encodeAnswers({ ...answers, ...lost }, this.#responder.payloadBytesMax);
      });
    this.#conditions.afterPosition(
      asker,
      { ...request, waitMs: PULL_WAIT_MS_MAX },
      answer,
      (error) => {
        // Outcomes of a replaced journal stay known if they were folded; all others are lost for good.
        if (error.code === "JOURNAL_REPLACED") answer();
        else this.#responder.refuse(asker, error);
      },
    );
  }

  step(data: Uint8Array, asker: Asker): void {
    const { steps } = this.#served.shard;
    const request = parseStepRequest(decodeMessage(data).fields);
    const { revision, step } = request;
    const answer = (): void =>
      this.#respond(asker, () =>
        encodeStepReply({
          ...this.#served.position,
          revision: steps.revision,
          step: steps.closed,
          waitingFor: steps.waitingFor(WAITING_FOR_MAX),
        }),
      );
    const wanted = { revision, step, trainer: asker.from, isRead: false };
    this.#conditions.afterStep(asker, request, wanted, answer, (error) =>
      this.#responder.refuse(asker, error),
    );
  }

  fragments(data: Uint8Array, asker: Asker): void {
    const { shard } = this.#served;
    const request = parseFragmentsRequest(decodeMessage(data).fields);
    const { fragment, version = 0 } = request;
    const member = request.member === true ? asker.from : undefined;
    const answer = (): void =>
      this.#respond(asker, () => {
        const fragments = shard
          .fragmentVersions()
          .filter(([name]) => fragment === undefined || name === fragment)
          .map(([name, present]): FragmentRow => {
            const sample = shard.sampledFor(name, present + 1);
            return [name, present, sample?.has(asker.from) ?? true];
          });
        const account = shard.fragments.ledger.of(asker.from);
        return encodeFragmentsReply({ ...this.#served.position, fragments, account });
      });
    const refuse = (error: PserverError): void => this.#responder.refuse(asker, error);
    if (fragment === undefined) this.#conditions.afterPosition(asker, request, answer, refuse);
    else {
      const wanted = { fragment, version, member };
      this.#conditions.afterRound(asker, request, wanted, answer, refuse);
    }
  }

  ownerVerb(bytes: Uint8Array, asker: Asker, verb: string): void {
    const { shard } = this.#served;
    const { fields, data } = decodeMessage(bytes);
    const reply = (entries: () => Fields): void =>
      this.#respond(asker, () => encodeMessage(entries()));
    const afterPosition = (entries: () => Fields): void => {
      const request = { ...parsePosition(fields), waitMs: PULL_WAIT_MS_MAX };
      const answer = (): void => reply(entries);
      this.#conditions.afterPosition(asker, request, answer, (error) =>
        this.#responder.refuse(asker, error),
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
      reply(() => ({ status: this.#served.status() }));
    } else if (verb === "memory") {
      reply(() => this.#served.memory());
    } else if (verb === "versions") {
      const wanted = parseShardVersionsRequest(fields);
      reply(() => shardVersionsReply(shardVersions(shard, wanted)));
    } else if (verb === "trainers") {
      const after = parseTrainersRequest(fields);
      reply(() => {
        const trainers = shard.trainers.after(after, TRAINERS_PER_MESSAGE_MAX);
        return trainersReply({ trainers, toldUpTo: shard.trainers.floor });
      });
    } else if (verb === "known") {
      const after = parseKnowledgeRequest(fields);
      const count = parametersPerRequest(this.#responder.payloadBytesMax);
      reply(() => knowledgeReply(shard.known(after, count)));
    } else if (verb === "snapshot") {
      this.#served.snapshot(parsePosition(fields)).then(
        (entries) => reply(() => entries),
        (error: unknown) => this.#responder.refuse(asker, ensureError(error)),
      );
    } else {
      throw new PserverError("BAD_MESSAGE", `no request to an owner: ${verb}`);
    }
  }

  /** Returns those of the wanted blocks that are missing or of another epoch. */
  #check(wanted: readonly unknown[]): Fields {
    const { shard, position } = this.#served;
    const missing: [string, number][] = [];
    for (const value of wanted) {
      const row = Array.isArray(value) ? (value as unknown[]) : [];
      const fields = asMap({ parameter: row[0], index: row[1], epoch: row[2] }, "block");
      const parameter = textField(fields, "parameter");
      const index = integerField(fields, "index");
      const block = shard.block(parameter, index);
      if (block?.epoch !== integerField(fields, "epoch", 1)) missing.push([parameter, index]);
    }
    return { ...position, missing };
  }

  /**
   * Returns the digest of the block that a request names, null if there is none; of the state without values if it
   * names none.
   */
  #digest(fields: Fields): Fields {
    const { shard, position } = this.#served;
    if (fields["parameter"] === undefined) return { ...position, digest: stateDigest(shard) };
    const block = shard.block(textField(fields, "parameter"), integerField(fields, "index"));
    return { ...position, digest: block === undefined ? null : blockDigest(block) };
  }

  #respond(asker: Asker, make: MakeReply): void {
    this.#responder.respond(asker, make);
  }
}

/** Returns the outcome of a record in a replaced journal: the record is lost unless it was folded. */
function lostIfUnseen(outcome: Outcome): Outcome {
  if (outcome.code !== "BAD_CHECKSUM") return outcome;
  const message = "the record was stored in a journal that was lost before it was folded";
  return { ...outcome, code: "JOURNAL_REPLACED", message };
}

const NO_BLOCKS: ShardVersions = { least: 0, most: 0, updates: 0, blocks: 0 };

/** Returns the versions of the shard's blocks of each parameter under the wanted epoch. */
export function shardVersions(
  shard: Pick<Shard, "blocks">,
  wanted: readonly WantedVersions[],
): ShardVersions[] {
  return wanted.map(({ parameter, epoch }) => {
    let found = NO_BLOCKS;
    for (const block of shard.blocks(parameter)) {
      if (block.epoch === epoch) found = withVersion(found, block.version);
    }
    return found;
  });
}

function withVersion(
  { least, most, updates, blocks }: ShardVersions,
  version: number,
): ShardVersions {
  return {
    least: blocks === 0 ? version : Math.min(least, version),
    most: Math.max(most, version),
    updates: updates + version - 1,
    blocks: blocks + 1,
  };
}

/** Returns the number of changes of all blocks of a shard since their `init`. */
export function shardUpdates(shard: Pick<Shard, "blocks">): number {
  let updates = 0;
  for (const { version } of shard.blocks()) updates += version - 1;
  return updates;
}
