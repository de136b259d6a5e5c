import { type JetStreamManager, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { Shard } from "../../src/actors/fold/shard.ts";
import { StepQueue, type WantedStep } from "../../src/actors/owner/pending-reads.ts";
import {
  computeLayout,
  type Declaration,
  decodeBatchRead,
  decodeMessage,
  draftPullReply,
  draftReadChunk,
  encodeAnswers,
  encodeError,
  encodeHostRecord,
  encodeMessage,
  encodeStepReply,
  ensureError,
  type Fields,
  JobSubjects,
  type LifecycleState,
  type LifecycleVerb,
  membersNeeded,
  type ParameterInfo,
  type Position,
  PserverError,
  paddedBytes,
  parseCreateRequest,
  parseDeclareRequest,
  parseFinishRequest,
  parseOutcomeRequest,
  parsePullRequest,
  parseStatusRequest,
  parseStepRequest,
  type SynchronizationInput,
  sealMessage,
  toSynchronization,
  WAITING_FOR_MAX,
} from "../../src/protocol/index.ts";
import { payloadBytesMaxOf } from "../../src/transport/bulk-transport.ts";
import { HANG_MS } from "./limits.ts";

/** One host that owns every shard: the real fold behind an in-memory lifecycle. */
export interface FakeHost {
  readonly subjects: JobSubjects;
  readonly shards: readonly Shard[];
  /** Requests received, by verb. */
  readonly received: Map<string, number>;
  /** Journal records folded, repeats included. */
  folded(): number;
  /** While true no answer to a record is sent by itself, nor to a save; `outcome` requests are answered. */
  mute: boolean;
  /** While true nothing is folded. */
  stalled: boolean;
  /** Errors that the next requests of a verb are answered with. */
  readonly refuse: Map<LifecycleVerb | "pull" | "outcome" | "step", PserverError[]>;
  /** Makes a trainer a member of the steps, or none, as if it had asked for it. */
  member(trainer: string, isMember: boolean): Promise<void>;
  /** Stops listening for requests, so that the broker answers 503; done when the broker knows. */
  deaf(deaf: boolean): Promise<void>;
  /** Initializes a parameter anew, as a second initializer would. */
  reinitialize(name: string, values: Float32Array): Promise<void>;
  floor(session: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts a {@link FakeHost} on a broker. */
export async function startFakeHost(options: {
  url: string;
  job: string;
  shards?: number;
  leaseMs?: number;
  journalBytesMax?: number;
  storage?: "file" | "memory";
  synchronization?: SynchronizationInput;
  user?: string;
  pass?: string;
}): Promise<FakeHost> {
  const connection = await connect({
    servers: options.url,
    ...(options.user !== undefined && { user: options.user, pass: options.pass ?? "" }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    reconnectJitter: 0,
  });
  const host = new Host(connection, options);
  await host.start();
  return host;
}

class Host implements FakeHost {
  readonly subjects: JobSubjects;
  readonly shards: Shard[];
  readonly received: Map<string, number> = new Map();
  readonly refuse: Map<LifecycleVerb | "pull" | "outcome" | "step", PserverError[]> = new Map();
  mute = false;
  readonly #connection: NatsConnection;
  readonly #options: Parameters<typeof startFakeHost>[0];
  readonly #leaseMs: number;
  readonly #parameters: Map<string, ParameterInfo> = new Map();
  #nextNumber = 1;
  readonly #sessions: Map<string, number> = new Map();
  readonly #creating: Map<string, string> = new Map();
  readonly #readings: Map<number, () => void> = new Map();
  readonly #taken: Map<number, number> = new Map();
  readonly #waiting: Set<() => boolean> = new Set();
  readonly #steps: StepQueue[];
  readonly #members: Set<string> = new Set();
  #membersRevision = 0;
  #started = false;
  #state: LifecycleState = "uninitialized";
  #epoch = 0;
  #by = "";
  #session = 0;
  #at: Position[] = [];
  #folded = 0;
  #stalled = false;
  #held: (() => void)[] = [];
  #stopDeaf: (() => void)[] = [];

  constructor(connection: NatsConnection, options: Parameters<typeof startFakeHost>[0]) {
    this.#connection = connection;
    this.#options = options;
    this.subjects = new JobSubjects(options.job);
    this.#leaseMs = options.leaseMs ?? 5_000;
    this.shards = Array.from({ length: options.shards ?? 4 }, (_, shard) =>
      Shard.create({ subjects: this.subjects, shard }),
    );
    this.#steps = this.shards.map((_, shard) => new StepQueue(shard));
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  set stalled(stalled: boolean) {
    this.#stalled = stalled;
    if (stalled) return;
    const held = this.#held;
    this.#held = [];
    for (const fold of held) fold();
  }

  folded(): number {
    return this.#folded;
  }

  async start(): Promise<void> {
    const manager = await jetstreamManager(this.#connection);
    for (const shard of this.shards.keys()) {
      const name = this.subjects.journalStream(shard, 1);
      await manager.streams.add({
        name,
        subjects: [this.subjects.shardLog(shard)],
        storage: this.#options.storage === "memory" ? StorageType.Memory : StorageType.File,
        discard: "new",
        ...(this.#options.journalBytesMax !== undefined && {
          max_bytes: this.#options.journalBytesMax,
        }),
      });
      const synchronization = toSynchronization(this.#options.synchronization);
      await this.append(shard, { verb: "rules", rules: 1, synchronization });
      await this.#read(manager, shard);
    }
    this.#watch(manager).catch((error: unknown) => {
      if (!this.#connection.isClosed()) throw error;
    });
    this.#listen();
    await this.#connection.flush();
  }

  /** Reads a journal on from where its fold stands, in place of an earlier reading. */
  async #read(manager: JetStreamManager, shard: number): Promise<void> {
    this.#readings.get(shard)?.();
    let stopped = false;
    this.#readings.set(shard, () => {
      stopped = true;
      messages.stop();
    });
    const consumer = await manager
      .jetstream()
      .consumers.get(this.subjects.journalStream(shard, 1), { opt_start_seq: this.#next(shard) });
    const messages = await consumer.consume({ max_messages: 64 });
    (async () => {
      for await (const { seq, subject, data } of messages) {
        if (stopped || seq !== this.#next(shard)) continue;
        this.#taken.set(shard, seq);
        const record = { seq, subject, payload: Uint8Array.from(data) };
        if (this.#stalled) this.#held.push(() => this.#fold(shard, record));
        else this.#fold(shard, record);
      }
    })().catch((error: unknown) => {
      if (!this.#connection.isClosed()) throw error;
    });
  }

  /** Sequence of the next record to take from a journal. */
  #next(shard: number): number {
    return (this.#taken.get(shard) ?? 0) + 1;
  }

  /** The broker forgets consumers when it dies. */
  async #watch(manager: JetStreamManager): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type !== "reconnect") continue;
      for (const shard of this.shards.keys()) await this.#read(manager, shard);
    }
  }

  async append(shard: number, record: Parameters<typeof encodeHostRecord>[0]): Promise<Position> {
    const subject = this.subjects.hostLog(shard, record.verb);
    const reply = await this.#connection.request(subject, encodeHostRecord(record), {
      timeout: HANG_MS,
    });
    const { seq } = reply.json<{ seq: number }>();
    return { generation: 1, seq };
  }

  async deaf(deaf: boolean): Promise<void> {
    if (!deaf) this.#listen();
    else for (const stop of this.#stopDeaf.splice(0)) stop();
    await this.#connection.flush();
  }

  async floor(session: number): Promise<void> {
    for (const shard of this.shards.keys()) await this.append(shard, { verb: "floor", session });
  }

  async member(trainer: string, isMember: boolean): Promise<void> {
    if (this.#members.has(trainer) !== isMember) this.#membersRevision += 1;
    if (isMember) this.#members.add(trainer);
    else this.#members.delete(trainer);
    const synchronization = toSynchronization(this.#options.synchronization);
    if (synchronization.mode !== "async") {
      this.#started ||= this.#members.size >= membersNeeded(synchronization);
    }
    const record = {
      verb: "members",
      revision: this.#membersRevision,
      started: this.#started,
      trainers: [...this.#members].sort(),
    } as const;
    for (const shard of this.shards.keys()) await this.append(shard, record);
  }

  async reinitialize(name: string, values: Float32Array): Promise<void> {
    const info = this.#parameters.get(name);
    if (info === undefined) throw new Error(`no parameter ${name}`);
    const epoch = info.epoch + 1;
    const again = { ...info, epoch };
    this.#parameters.set(name, again);
    await this.#grant("other", again);
    const shard = info.layout.firstShard;
    const session = ++this.#session;
    const { dtype, shape, config } = info;
    const entries = { session, n: 1, done: 0, reply: "", epoch, dtype, shape, start: 0 };
    const ack = await this.#connection.request(
      this.subjects.log(shard, "other", "init", name, 0),
      encodeMessage(
        { ...entries, count: values.length, config },
        new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      ),
      { timeout: HANG_MS },
    );
    // A pull asks for no position that its trainer has not seen, so it could be answered before.
    const { seq } = ack.json<{ seq: number }>();
    await new Promise<void>((resolve) => this.#when(shard, seq, resolve));
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #listen(): void {
    const subscribe = (subject: string, handle: (message: Msg) => void): void => {
      const subscription = this.#connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null) handle(message);
        },
      });
      this.#stopDeaf.push(() => subscription.unsubscribe());
    };
    subscribe(this.subjects.allLifecycle(), (message) => this.#lifecycle(message));
    subscribe(this.subjects.allControl(), (message) => this.#control(message));
    subscribe(`ps.${this.subjects.job}.block.*.*.*.pull`, (message) => this.#pull(message));
    subscribe(`ps.${this.subjects.job}.shard.*.*.outcome`, (message) => this.#outcome(message));
    subscribe(`ps.${this.subjects.job}.shard.*.*.step`, (message) => this.#step(message));
    subscribe(`ps.${this.subjects.job}.shard.*.*.read`, (message) => this.#readBatch(message));
  }

  #fold(shard: number, record: { seq: number; subject: string; payload: Uint8Array }): void {
    const settled = this.shards[shard]?.apply(record);
    this.#folded += 1;
    if (settled !== undefined && settled.reply !== "" && !this.mute) {
      const { session, outcome, reply } = settled;
      this.#connection.publish(
        reply,
        encodeAnswers({ shard, generation: 1, session, outcomes: [outcome] }),
      );
    }
    for (const check of this.#waiting) if (check()) this.#waiting.delete(check);
    this.#steps[shard]?.advance();
  }

  #count(verb: string): PserverError | undefined {
    this.received.set(verb, (this.received.get(verb) ?? 0) + 1);
    return this.refuse.get(verb as LifecycleVerb)?.shift();
  }

  #answer(message: Msg, make: () => Uint8Array): void {
    try {
      message.respond(make());
    } catch (error) {
      message.respond(encodeError(ensureError(error)));
    }
  }

  #when(shard: number, seq: number, run: () => void): void {
    const check = (): boolean => {
      if ((this.shards[shard]?.seq ?? 0) < seq) return false;
      run();
      return true;
    };
    if (!check()) this.#waiting.add(check);
  }

  #outcome(message: Msg): void {
    const refused = this.#count("outcome");
    const shard = Number(message.subject.split(".")[3]);
    const { id } = this.subjects.parseSender(message.subject);
    const request = parseOutcomeRequest(decodeMessage(message.data).fields);
    this.#when(shard, refused === undefined ? request.seq : 0, () =>
      this.#answer(message, () => {
        if (refused !== undefined) throw refused;
        const outcomes = this.shards[shard]?.outcomes(id, request) ?? [];
        return encodeAnswers({ shard, generation: 1, session: request.session, outcomes });
      }),
    );
  }

  #step(message: Msg): void {
    const refused = this.#count("step");
    const shard = Number(message.subject.split(".")[3]);
    const { id: trainer } = this.subjects.parseSender(message.subject);
    const { revision, step, seq, waitMs } = parseStepRequest(decodeMessage(message.data).fields);
    this.#when(shard, refused === undefined ? seq : 0, () => {
      if (refused !== undefined) {
        message.respond(encodeError(refused));
        return;
      }
      this.#afterStep(message, shard, { revision, step, trainer, isRead: false }, waitMs, () => {
        const steps = this.shards[shard]?.steps;
        return encodeStepReply({
          generation: 1,
          seq: this.shards[shard]?.seq ?? 0,
          revision: steps?.revision ?? 0,
          step: steps?.closed ?? 0,
          waitingFor: steps?.waitingFor(WAITING_FOR_MAX) ?? [],
        });
      });
    });
  }

  #afterStep(
    message: Msg,
    shard: number,
    wanted: WantedStep,
    waitMs: number,
    make: () => Uint8Array,
  ): void {
    const progress = this.shards[shard]?.steps;
    if (progress === undefined) throw new Error(`no shard ${shard}`);
    this.#steps[shard]?.at(progress, {
      from: wanted.trainer,
      wanted,
      waitMs,
      run: () => this.#answer(message, make),
      refuse: (error) => void message.respond(encodeError(error)),
    });
  }

  #pull(message: Msg): void {
    const refused = this.#count("pull");
    const [, , , token = "", indexText = ""] = message.subject.split(".");
    const { id: trainer } = this.subjects.parseSender(message.subject);
    const request = parsePullRequest(decodeMessage(message.data).fields);
    const index = Number(indexText);
    const name = decodeURIComponent(token.replaceAll("=", "%"));
    const info = this.#parameters.get(name);
    const shard = info === undefined ? 0 : (info.layout.firstShard + index) % info.layout.shards;
    const values = (): Uint8Array => {
      if (refused !== undefined) throw refused;
      const block = this.shards[shard]?.block(name, index);
      if (block?.epoch !== request.epoch) throw new PserverError("STALE_EPOCH", "stale");
      const { dtype, epoch, version } = block;
      const seq = this.shards[shard]?.seq ?? 0;
      const draft = draftPullReply({ epoch, dtype, version, generation: 1, seq }, block.bytes);
      draft.data.set(block.values());
      return sealMessage(draft);
    };
    this.#when(shard, refused === undefined ? request.seq : 0, () => {
      const { step = 0, waitMs } = request;
      if (step === 0) this.#answer(message, values);
      else
        this.#afterStep(
          message,
          shard,
          { revision: 0, step, trainer, isRead: true },
          waitMs,
          values,
        );
    });
  }

  /** Answers a batched read of whole blocks, in one chunk. */
  #readBatch(message: Msg): void {
    const number = Number(message.subject.split(".")[3]);
    const { numbers, parts, generation, seq } = decodeBatchRead(message.data);
    this.#when(number, seq, () =>
      this.#answer(message, () => {
        if (parts !== undefined) throw new PserverError("INTERNAL", "this host reads no parts");
        const blocks = [...numbers].map((each) => {
          const block = this.shards[number]?.blockOfNumber(each);
          if (block === undefined) throw new PserverError("STALE_EPOCH", "stale");
          return block;
        });
        const valueBytes = blocks.reduce((sum, { bytes }) => sum + paddedBytes(bytes), 0);
        const versions = Float64Array.from(blocks, ({ version }) => version);
        const position = { generation, seq: this.shards[number]?.seq ?? 0 };
        const header = { ...position, from: 0, more: false, versions };
        const { draft, values } = draftReadChunk(header, valueBytes);
        values.fill(0);
        let at = 0;
        for (const block of blocks) {
          values.set(block.values(), at);
          at += paddedBytes(block.bytes);
        }
        return sealMessage(draft);
      }),
    );
  }

  #control(message: Msg): void {
    const { verb } = this.subjects.parseSender(message.subject);
    this.#count(verb);
    if (verb === "stop" || this.mute) return;
    const path = String(decodeMessage(message.data).fields["path"]);
    this.#answer(message, () =>
      encodeMessage({ file: path, bytes: 3, format: "safetensors", host: "fake" }),
    );
  }

  #lifecycle(message: Msg): void {
    const { id, verb } = this.subjects.parseSender(message.subject);
    const refused = this.#count(verb);
    this.#answer(message, () => {
      if (refused !== undefined) throw refused;
      const { fields } = decodeMessage(message.data);
      return encodeMessage(this.#handle(id, verb as LifecycleVerb, fields));
    });
  }

  #handle(trainer: string, verb: LifecycleVerb, fields: Fields): Fields {
    switch (verb) {
      case "join":
        this.#sessions.set(trainer, ++this.#session);
        return {
          session: this.#session,
          made: "now",
          shards: this.shards.length,
          leaseMs: this.#leaseMs,
          journal: "file",
          synchronization: toSynchronization(this.#options.synchronization),
          maxPayloadBytes: payloadBytesMaxOf(this.#connection),
        };
      case "renew":
      case "abort":
        return {};
      case "leave":
      case "exit":
        if (this.#members.has(trainer)) this.#tell(this.member(trainer, false));
        return {};
      case "enter":
        this.#tell(this.member(trainer, true));
        return { revision: this.#membersRevision };
      case "begin":
        if (this.#state === "uninitialized") {
          this.#state = "initializing";
          this.#epoch += 1;
          this.#by = trainer;
        }
        return this.#begun(this.#state === "initializing" && this.#by === trainer);
      case "declare": {
        const { parameters } = parseDeclareRequest(fields);
        return { parameters: parameters.map((each) => this.#declare(trainer, each)) };
      }
      case "create":
        return this.#create(trainer, parseCreateRequest(fields).parameter);
      case "finish":
        return this.#finish(parseFinishRequest(fields));
      case "status":
        return this.#status(parseStatusRequest(fields));
    }
  }

  /** Fails the test if the journals cannot be told while the host is there. */
  #tell(told: Promise<void>): void {
    told.catch((error: unknown) => {
      if (!this.#connection.isClosed()) throw error;
    });
  }

  #begun(selected: boolean): Fields {
    return { selected, state: this.#state, epoch: this.#epoch, by: this.#by };
  }

  #declare(trainer: string, declaration: Declaration): ParameterInfo {
    const { name, dtype, shape, config } = declaration;
    const layout = computeLayout({
      name,
      dtype,
      shape,
      shards: this.shards.length,
      maxPayloadBytes: payloadBytesMaxOf(this.#connection),
      wholeRows: config.sparse,
    });
    const epoch = Math.max(1, this.#epoch);
    const firstNumber = this.#nextNumber;
    this.#nextNumber += layout.blocks;
    const info = { ...declaration, epoch, ready: false, layout, firstNumber };
    this.#parameters.set(name, info);
    // Published before the answer, and so stored before what the trainer then sends.
    this.#tell(this.#grant(trainer, info));
    return info;
  }

  /** Tells all journals that this trainer initializes a parameter. */
  async #grant(trainer: string, { ready: _, ...parameter }: ParameterInfo): Promise<void> {
    const record = { verb: "declare", trainer, parameters: [parameter] } as const;
    await Promise.all(this.shards.map((_, shard) => this.append(shard, record)));
  }

  #create(trainer: string, declaration: Declaration): Fields {
    const { name } = declaration;
    const known = this.#parameters.get(name);
    if (known === undefined) {
      this.#creating.set(name, trainer);
      const info = this.#declare(trainer, declaration);
      return { selected: true, state: "initializing", epoch: 1, by: trainer, parameters: [info] };
    }
    const by = this.#creating.get(name) ?? "";
    const state = known.ready ? "ready" : "initializing";
    const selected = !known.ready && by === trainer;
    return { selected, state, epoch: known.epoch, by, parameters: [known] };
  }

  #finish({ parameter, at }: ReturnType<typeof parseFinishRequest>): Fields {
    for (const [name, info] of this.#parameters) {
      if (parameter === undefined || parameter === name) {
        this.#parameters.set(name, { ...info, ready: true });
      }
    }
    if (parameter === undefined) {
      this.#state = "ready";
      this.#at = this.shards.map((_, shard) => {
        const { generation = 1, seq = 0 } = at.find((entry) => entry.shard === shard) ?? {};
        return { generation, seq };
      });
    }
    return {};
  }

  #status({ names, after = "", limit }: ReturnType<typeof parseStatusRequest>): Fields {
    const sorted = [...this.#parameters.values()]
      .filter(({ name }) => name > after)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const page = limit === undefined ? [] : sorted.slice(0, limit);
    return {
      state: this.#state,
      epoch: this.#epoch,
      by: this.#by,
      shards: this.shards.length,
      parameters: names?.map((name) => this.#parameters.get(name) ?? null) ?? page,
      more: limit !== undefined && sorted.length > limit,
      at: this.#at,
    };
  }
}
