import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  type Allocate,
  asMap,
  blockRows,
  decodeMessage,
  draftPullReply,
  encodeAnswers,
  encodeError,
  encodeMessage,
  encodeStepReply,
  ensureError,
  type Fallback,
  type Fields,
  fallbacksSince,
  integerField,
  type JobSubjects,
  listField,
  type Outcome,
  type Position,
  PserverError,
  PULL_WAIT_MS_MAX,
  type PullRequest,
  parseOutcomeRequest,
  parsePosition,
  parsePullRequest,
  parseShardVersionsRequest,
  parseStepRequest,
  parseTrainersRequest,
  readPartRequest,
  sealMessage,
  shardVersionsReply,
  TRAINERS_PER_MESSAGE_MAX,
  textField,
  trainersReply,
  WAITING_FOR_MAX,
} from "../../protocol/index.ts";
import type { Block } from "../fold/block.ts";
import { ElementReader } from "../fold/read-elements.ts";
import type { Shard } from "../fold/shard.ts";
import type { FailedBlocks } from "./failed-blocks.ts";
import type { Intake } from "./intake.ts";
import { KnownChecksums } from "./known-checksums.ts";
import type { PositionQueue } from "./position-queue.ts";
import type { Asker, Responder } from "./responder.ts";
import { shardVersions } from "./shard-versions.ts";
import type { StepQueue, WantedStep } from "./step-queue.ts";
import { WantedParts } from "./wanted-parts.ts";

/** Blocks one `check` may ask for; a longer list comes in parts. */
const CHECK_BLOCKS_MAX = 16_384;

/** The shard as its requests see it. */
export interface RequestedShard {
  readonly number: number;
  readonly shard: Shard;
  readonly positions: PositionQueue;
  readonly steps: StepQueue;
  /** Where the fold stands. */
  position(): Position;
  /** What the shard did not keep of journals that were replaced. */
  fallbacks(): readonly Fallback[];
  /** The error that ended the fold, if one did. */
  failure(): PserverError | undefined;
  /** Whether this host may answer: its lease has not run out. */
  mayAnswer(): boolean;
  /** A snapshot at this position or later; makes one unless there is one. */
  snapshot(at: Position): Promise<Fields>;
  status(): Fields;
  /** What the host could still hold. */
  memory(): Fields;
}

/** Which block. */
type BlockName = Pick<Block, "parameter" | "index">;

/** A request that may wait for a position. */
type Waiting = Position & { readonly waitMs: number };

/** What is pulled of which block. */
interface Pull {
  readonly parameter: string;
  readonly index: number;
  readonly request: PullRequest;
  /** The index of the part that is wanted, if the request wants one. */
  readonly part: Uint8Array;
}

/** Answers the requests to one shard and its block actors. */
export class ShardRequests {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;
  readonly #intake: Intake;
  readonly #responder: Responder;
  readonly #owner: RequestedShard;
  readonly #blocks: Map<string, Subscription> = new Map();
  readonly #parts: WantedParts;
  readonly #failedBlocks: FailedBlocks;
  #fixed: Subscription[] = [];
  #leaveFailedBlocks: () => void = () => undefined;
  readonly #checksums: KnownChecksums = new KnownChecksums();
  #refused = 0;

  constructor(options: {
    readonly connection: NatsConnection;
    readonly subjects: JobSubjects;
    /** Of all shards of the worker. */
    readonly intake: Intake;
    readonly responder: Responder;
    readonly failedBlocks: FailedBlocks;
    readonly owner: RequestedShard;
  }) {
    this.#connection = options.connection;
    this.#subjects = options.subjects;
    this.#intake = options.intake;
    this.#responder = options.responder;
    this.#failedBlocks = options.failedBlocks;
    this.#owner = options.owner;
    this.#parts = new WantedParts(options.owner.number);
  }

  /** Requests that named a reply subject outside the asker's inbox, and so got no answer. */
  get refused(): number {
    return this.#refused;
  }

  /** Subscribes for the shard and all its blocks, or those that it would have. */
  open(blocks: Iterable<BlockName> = this.#owner.shard.blocks()): void {
    if (this.#fixed.length > 0) return;
    this.#openShard();
    for (const block of blocks) this.blockAdded(block);
  }

  /** Subscribes for a shard that has failed: all its blocks, also those that it does not know. */
  openFailed(): void {
    if (this.#fixed.length === 0) this.#openShard();
    for (const subscription of this.#blocks.values()) subscription.unsubscribe();
    this.#blocks.clear();
    this.#leaveFailedBlocks = this.#failedBlocks.add(this.#owner.number, (message) =>
      this.#receive(message, "trainer", () => undefined),
    );
  }

  #openShard(): void {
    const { outcome, step, owner } = this.#subjects.shardRequests(this.#owner.number);
    this.#fixed = [
      this.#subscribe(outcome, (data, asker) => this.#outcome(data, asker)),
      this.#subscribe(step, (data, asker) => this.#step(data, asker)),
      this.#subscribe(owner, (data, asker, verb) => this.#ownerVerb(data, asker, verb), "host"),
    ];
  }

  /** A block actor appears: requests to it are answered from now on. */
  blockAdded(block: BlockName): void {
    const subject = this.#subjects.block(block.parameter, block.index);
    if (this.#fixed.length === 0 || this.#blocks.has(subject)) return;
    const { parameter, index } = block;
    this.#blocks.set(
      subject,
      this.#subscribe(subject, (data, asker) => this.#pull(data, asker, parameter, index)),
    );
  }

  /** A block actor is gone. */
  blockRemoved(block: Block): void {
    const subject = this.#subjects.block(block.parameter, block.index);
    this.#blocks.get(subject)?.unsubscribe();
    this.#blocks.delete(subject);
  }

  /** Answers nothing any more. */
  close(): void {
    for (const subscription of [...this.#fixed, ...this.#blocks.values()])
      subscription.unsubscribe();
    this.#fixed = [];
    this.#blocks.clear();
    this.#leaveFailedBlocks();
  }

  #subscribe(
    subject: string,
    handle: (data: Uint8Array, asker: Asker, verb: string) => void,
    from: "trainer" | "host" = "trainer",
  ): Subscription {
    return this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message, from, handle);
      },
    });
  }

  #receive(
    message: Msg,
    from: "trainer" | "host",
    handle: (data: Uint8Array, asker: Asker, verb: string) => void,
  ): void {
    if (!this.#owner.mayAnswer()) return;
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject, reply, from);
    if (sender === undefined) {
      this.#refused++;
      return;
    }
    const { id, verb } = sender;
    // A host that is called as a trainer is another asker: names have no space.
    const asker = { from: from === "host" ? `host ${id}` : id, reply };
    this.#intake.take({
      from: asker.from,
      data: message.data,
      run: (data) => this.#run(asker, () => handle(data, asker, verb)),
      refuse: (busy) => this.#refuse(asker, busy),
    });
  }

  /** Works on a request, which may have waited until the shard is another host's. */
  #run(asker: Asker, work: () => void): void {
    if (this.#fixed.length === 0 || !this.#owner.mayAnswer()) return;
    try {
      const failure = this.#owner.failure();
      if (failure !== undefined) throw failure;
      work();
    } catch (error) {
      this.#refuse(asker, ensureError(error));
    }
  }

  /**
   * Who asks for what; undefined if the answer would not go to the asker's own inbox. Answering
   * elsewhere would let the asker write where only this host may.
   */
  #sender(
    subject: string,
    reply: string,
    from: "trainer" | "host",
  ): { id: string; verb: string } | undefined {
    try {
      const sender = this.#subjects.parseSender(subject);
      const allowed =
        from === "host"
          ? this.#subjects.isHostInbox(reply, sender.id)
          : this.#subjects.mayAnswer(reply, sender.id);
      return allowed ? sender : undefined;
    } catch {
      // The subject names nobody.
      return undefined;
    }
  }

  #pull(bytes: Uint8Array, asker: Asker, parameter: string, index: number): void {
    const { fields, data } = decodeMessage(bytes);
    const request = parsePullRequest(fields);
    this.#pullBlock(asker, { parameter, index, request, part: data });
  }

  /** `part`: the request's bytes. */
  #pullBlock(asker: Asker, pull: Pull): void {
    const { request } = pull;
    const { index, release } = this.#parts.hold(asker.from, pull.part);
    const answer = (): void => {
      const willAnswer = this.#responder.respond(asker, (allocate) => {
        release();
        return this.#values({ ...pull, part: index }, allocate);
      });
      if (!willAnswer) release();
    };
    const refuse = (error: PserverError): void => {
      release();
      this.#refuse(asker, error);
    };
    const { step } = request;
    // Step 0 has always closed, and a job without steps has no other.
    if (step === undefined || step === 0) this.#afterPosition(asker, request, answer, refuse);
    else this.#afterStep(asker, request, { revision: 0, step }, answer, refuse);
  }

  #values({ parameter, index, request, part }: Pull, allocate: Allocate): Uint8Array {
    const { shard } = this.#owner;
    const { epoch, encoding } = request;
    const block = shard.block(parameter, index);
    if (block?.epoch !== epoch) {
      throw new PserverError(
        "STALE_EPOCH",
        `${parameter} block ${index}: expected epoch ${block?.epoch ?? "none"}; received ${epoch}`,
        { parameter, block: index, expected: block?.epoch, received: epoch },
      );
    }
    const { dtype, version } = block;
    const reader = new ElementReader(shard.memory, block, {
      part: request.part && readPartRequest(request.part, part, blockRows(block)),
      encoding,
    });
    const head = { epoch, dtype, version, ...this.#owner.position() };
    const reply = encoding === undefined ? head : { ...head, encoding };
    const draft = draftPullReply(reply, reader.bytes, allocate);
    // A copy: the block changes while the broker takes the message.
    reader.read(draft.data);
    const isWhole = request.part === undefined && encoding === undefined;
    return sealMessage(draft, isWhole ? this.#checksums.of(block, draft.data) : undefined);
  }

  #outcome(data: Uint8Array, asker: Asker): void {
    const trainer = asker.from;
    const request = parseOutcomeRequest(decodeMessage(data).fields);
    const answer = (): void => {
      this.#responder.respond(asker, () => {
        const { generation } = this.#owner.position();
        const outcomes = this.#owner.shard.outcomes(trainer, request);
        const replaced = request.generation < generation;
        const fallbacks = fallbacksSince(this.#owner.fallbacks(), request.generation);
        return encodeAnswers({
          shard: this.#owner.number,
          generation,
          session: request.session,
          outcomes: replaced ? outcomes.map(lostIfUnseen) : outcomes,
          ...(replaced ? { fallbacks } : {}),
        });
      });
    };
    this.#afterPosition(asker, { ...request, waitMs: PULL_WAIT_MS_MAX }, answer, (error) => {
      // What was folded from a journal that has been replaced since is known still; what was not
      // folded is lost, and no waiting brings it.
      if (error.code === "JOURNAL_REPLACED") answer();
      else this.#refuse(asker, error);
    });
  }

  #step(data: Uint8Array, asker: Asker): void {
    const trainer = asker.from;
    const request = parseStepRequest(decodeMessage(data).fields);
    const { revision, step } = request;
    const answer = (): void => {
      this.#responder.respond(asker, () => {
        const { steps } = this.#owner.shard;
        return encodeStepReply({
          ...this.#owner.position(),
          revision: steps.revision,
          step: steps.closed,
          waitingFor: steps.waitingFor(WAITING_FOR_MAX),
        });
      });
    };
    this.#afterStep(asker, request, { revision, step, trainer }, answer, (error) =>
      this.#refuse(asker, error),
    );
  }

  #ownerVerb(bytes: Uint8Array, asker: Asker, verb: string): void {
    const { fields, data } = decodeMessage(bytes);
    if (verb === "pull") {
      const parameter = textField(fields, "parameter");
      const index = integerField(fields, "index");
      this.#pullBlock(asker, { parameter, index, request: parsePullRequest(fields), part: data });
    } else if (verb === "check") {
      const request = { ...parsePosition(fields), waitMs: PULL_WAIT_MS_MAX };
      const wanted = listField(fields, "blocks", CHECK_BLOCKS_MAX);
      const answer = (): void => {
        this.#responder.respond(asker, () => encodeMessage(this.#check(wanted)));
      };
      this.#afterPosition(asker, request, answer, (error) => this.#refuse(asker, error));
    } else if (verb === "status") {
      this.#responder.respond(asker, () => encodeMessage({ status: this.#owner.status() }));
    } else if (verb === "memory") {
      this.#responder.respond(asker, () => encodeMessage(this.#owner.memory()));
    } else if (verb === "versions") {
      const wanted = parseShardVersionsRequest(fields);
      this.#responder.respond(asker, () =>
        encodeMessage(shardVersionsReply(shardVersions(this.#owner.shard, wanted))),
      );
    } else if (verb === "trainers") {
      const after = parseTrainersRequest(fields);
      this.#responder.respond(asker, () => {
        const { trainers } = this.#owner.shard;
        const some = trainers.after(after, TRAINERS_PER_MESSAGE_MAX);
        return encodeMessage(trainersReply({ trainers: some, toldUpTo: trainers.floor }));
      });
    } else if (verb === "snapshot") {
      this.#owner.snapshot(parsePosition(fields)).then(
        (entries) => this.#responder.respond(asker, () => encodeMessage(entries)),
        (error: unknown) => this.#refuse(asker, ensureError(error)),
      );
    } else {
      throw new PserverError("BAD_MESSAGE", `no request to an owner: ${verb}`);
    }
  }

  /** Which of the wanted blocks are missing or of another epoch. */
  #check(wanted: readonly unknown[]): Fields {
    const missing: [string, number][] = [];
    for (const value of wanted) {
      const row = Array.isArray(value) ? (value as unknown[]) : [];
      const fields = asMap({ parameter: row[0], index: row[1], epoch: row[2] }, "block");
      const parameter = textField(fields, "parameter");
      const index = integerField(fields, "index");
      const block = this.#owner.shard.block(parameter, index);
      if (block?.epoch !== integerField(fields, "epoch", 1)) missing.push([parameter, index]);
    }
    return { ...this.#owner.position(), missing };
  }

  /** Calls `run` once the shard is folded so far, or else `refuse`. */
  #afterPosition(
    { from }: Asker,
    { generation, seq, waitMs }: Waiting,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const visit = { from, wanted: { generation, seq, asker: from }, waitMs, run, refuse };
    this.#owner.positions.at(this.#owner.position(), visit);
  }

  /** Calls `run` once the shard is folded so far and its steps are, both in the request's time. */
  #afterStep(
    asker: Asker,
    request: Waiting,
    wanted: WantedStep,
    run: () => void,
    refuse: (error: PserverError) => void,
  ): void {
    const { from } = asker;
    const deadline = performance.now() + request.waitMs;
    const arrived = (): void => {
      const waitMs = Math.max(0, Math.ceil(deadline - performance.now()));
      this.#owner.steps.at(this.#owner.shard.steps, { from, wanted, waitMs, run, refuse });
    };
    this.#afterPosition(asker, request, arrived, refuse);
  }

  #refuse(asker: Asker, error: PserverError): void {
    this.#responder.respond(asker, () => encodeError(error));
  }
}

/** The fold has not seen the record, and the journal that held it is gone. */
function lostIfUnseen(outcome: Outcome): Outcome {
  if (outcome.code !== "BAD_CHECKSUM") return outcome;
  const message = "the record was stored in a journal that was lost before it was folded";
  return { ...outcome, code: "JOURNAL_REPLACED", message };
}
