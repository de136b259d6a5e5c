import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import { JETSTREAM_ERRORS } from "../../../src/protocol/jetstream-errors.ts";

/** A message of a stream. */
export interface StoredMessage {
  readonly seq: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly timeMs: number;
}

/** What a client sends. */
export interface ClientMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs | undefined;
  /** Where the answer goes; undefined for a request, whose answer goes to its caller. */
  readonly reply?: string | undefined;
}

/** What a client gets. */
export interface BrokerMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
  readonly reply: string;
}

type Config = Partial<StreamConfig> & Pick<StreamConfig, "name" | "subjects">;

/** A stream; it remembers removed messages, for the oracles. */
class SimulatedStream {
  config: Config;
  readonly created: string;
  readonly messages: Map<number, StoredMessage> = new Map();
  /** All messages there ever were. */
  readonly ever: Map<number, StoredMessage> = new Map();
  lastSeq = 0;
  /** Sequences of messages by the ids that their senders gave them, and the id of the last message. */
  readonly ids: Map<string, number> = new Map();
  lastId = "";

  constructor(config: Config, created: string) {
    this.config = config;
    this.created = created;
  }

  lastOf(filter: string): StoredMessage | undefined {
    return [...this.messages.values()].findLast(({ subject }) => matches(filter, subject));
  }

  store(subject: string, data: Uint8Array, timeMs: number): number {
    const former = this.config.max_msgs_per_subject === 1 ? this.lastOf(subject) : undefined;
    if (former !== undefined) this.messages.delete(former.seq);
    this.lastSeq += 1;
    const message = { seq: this.lastSeq, subject, data, timeMs };
    this.messages.set(this.lastSeq, message);
    this.ever.set(this.lastSeq, message);
    return this.lastSeq;
  }

  info(filter?: string) {
    const sequences = [...this.messages.keys()];
    const first = sequences[0] ?? this.lastSeq + 1;
    const deleted: number[] = [];
    for (let seq = first; seq <= this.lastSeq; seq++)
      if (!this.messages.has(seq)) deleted.push(seq);
    const found = [...this.messages.values()].filter(
      ({ subject }) => filter !== undefined && matches(filter, subject),
    );
    return {
      created: this.created,
      config: { max_age: 0, max_bytes: -1, ...this.config },
      state: {
        ...{ messages: sequences.length, bytes: sequences.length, consumer_count: 0, deleted },
        ...{ first_seq: first, last_seq: this.lastSeq },
        ...(filter !== undefined && {
          subjects: Object.fromEntries(found.map(({ subject }) => [subject, 1])),
        }),
      },
    };
  }
}

/** A reader of a stream: what it is to get, and how far it has got it. */
interface Consumer {
  readonly stream: SimulatedStream;
  readonly config: Partial<ConsumerConfig>;
  next: number;
  delivered: number;
}

/** Whether a subject belongs to a filter with wildcards. */
export function matches(filter: string, subject: string): boolean {
  const [wanted, tokens] = [filter.split("."), subject.split(".")];
  const rest = wanted.at(-1) === ">";
  if (rest ? tokens.length < wanted.length : tokens.length !== wanted.length) return false;
  return wanted.every((token, i) => token === "*" || token === ">" || token === tokens[i]);
}

/** Whether some subject belongs to both filters. */
function overlap(a: string, b: string): boolean {
  return matches(a, b) || matches(b, a);
}

const E = JETSTREAM_ERRORS;

/** A refusal of JetStream's API. */
class Refusal extends Error {
  readonly code: number;
  readonly errorCode: number;

  constructor(code: number, errorCode: number, text: string) {
    super(text);
    this.code = code;
    this.errorCode = errorCode;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const NOTHING = new Uint8Array(0);

/**
 * JetStream in memory, as far as the project uses it: streams and their direct reads, buckets by their
 * compare-and-swap, and consumers. Each message of a client has its whole effect at once, in the order in which the
 * schedule hands them over.
 */
export class SimulatedBroker {
  readonly streams: Map<string, SimulatedStream> = new Map();
  /** All streams that were removed. */
  readonly removed: SimulatedStream[] = [];
  /** When a message of a subject was removed by itself last, by the subject. */
  readonly removals: Map<string, number> = new Map();
  readonly #consumers: Map<string, Consumer> = new Map();
  #clock = 0;

  /** Takes a message; returns the answers, none if nobody listens to its subject. */
  take(message: ClientMessage): BrokerMessage[] {
    this.#clock += 1;
    const { subject } = message;
    if (subject.startsWith("$JS.API.CONSUMER.MSG.NEXT.")) return this.#next(message);
    try {
      if (subject.startsWith("$JS.API.DIRECT.GET.")) return [this.#direct(message)];
      if (subject.startsWith("$JS.API.")) return [answer(this.#api(message))];
      return this.#publish(message);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, errorCode, message: description } = error;
      return [answer({ error: { code, err_code: errorCode, description } })];
    }
  }

  /** The time by its clock: the number of messages taken. */
  get now(): number {
    return this.#clock;
  }

  /** The stream of this name. */
  stream(name: string): SimulatedStream {
    const stream = this.streams.get(name);
    if (stream === undefined) throw new Refusal(404, E.STREAM_NOT_FOUND, "stream not found");
    return stream;
  }

  /** The stream of this name, or the one that was removed last; undefined if there was never one. */
  findEver(name: string): SimulatedStream | undefined {
    return this.streams.get(name) ?? this.removed.findLast(({ config }) => config.name === name);
  }

  /** As {@link findEver} for one that there was. */
  everOf(name: string): SimulatedStream {
    const stream = this.findEver(name);
    if (stream === undefined) throw new Error(`there was never a stream ${name}`);
    return stream;
  }

  #publish({ subject, data, headers: sent }: ClientMessage): BrokerMessage[] {
    const stream = [...this.streams.values()].find(({ config }) =>
      config.subjects.some((filter) => matches(filter, subject)),
    );
    if (stream === undefined) return [];
    const expectations = [
      ["Nats-Expected-Last-Subject-Sequence", stream.lastOf(subject)?.seq ?? 0],
      ["Nats-Expected-Last-Sequence", stream.lastSeq],
    ] as const;
    const id = sent?.get("Nats-Msg-Id") ?? "";
    const known = id === "" ? undefined : stream.ids.get(id);
    if (known !== undefined) return [answer({ stream: stream.config.name, seq: known })];
    const lastId = sent?.get("Nats-Expected-Last-Msg-Id") ?? "";
    if (lastId !== "" && lastId !== stream.lastId)
      throw new Refusal(400, E.WRONG_LAST_ID, `wrong last msg ID: ${stream.lastId}`);
    for (const [header, last] of expectations) {
      if (sent?.has(header) !== true || Number(sent.get(header)) === last) continue;
      throw new Refusal(400, E.WRONG_LAST_SEQUENCE, `wrong last sequence: ${last}`);
    }
    const seq = stream.store(subject, data, this.#clock);
    stream.lastId = id;
    if (id !== "") stream.ids.set(id, seq);
    return [answer({ stream: stream.config.name, seq })];
  }

  #api({ subject, data }: ClientMessage): object {
    const [, , ...tokens] = subject.split(".");
    const body = (data.length === 0 ? {} : JSON.parse(decoder.decode(data))) as Fields;
    const name = tokens.at(-1) ?? "";
    switch (tokens.slice(0, 2).join(".")) {
      case "INFO":
        return {
          ...{ memory: 0, storage: 0, streams: this.streams.size, consumers: 0 },
          limits: { max_memory: -1, max_storage: -1, max_streams: -1, max_consumers: -1 },
        };
      case "STREAM.INFO":
        return this.stream(name).info(body["subjects_filter"] as string | undefined);
      case "STREAM.CREATE":
        return this.#create(body as Config);
      case "STREAM.UPDATE":
        return this.#update(body as Config);
      case "STREAM.DELETE":
        this.removed.push(this.stream(name));
        this.streams.delete(name);
        return { success: true };
      case "STREAM.NAMES":
        return this.#page("names", body, ({ config }) => config.name);
      case "STREAM.LIST":
        return this.#page("list", body, (stream) => stream.info());
      case "STREAM.PURGE":
        return this.#purge(this.stream(name), Number(body["seq"]));
      case "STREAM.MSG":
        return tokens[2] === "GET" ? this.#message(name, body) : this.#deleteMessage(name, body);
      case "CONSUMER.CREATE":
        return this.#consume(tokens[2] ?? "", body["config"] as Partial<ConsumerConfig>);
      case "CONSUMER.DELETE":
        return { success: this.#consumers.delete(name) };
      default:
        throw new Error(`the simulated broker does not know ${subject}`);
    }
  }

  #create(config: Config): object {
    const present = this.streams.get(config.name);
    if (present !== undefined) {
      if (JSON.stringify(present.config) === JSON.stringify(config)) return present.info();
      throw new Refusal(400, E.STREAM_NAME_IN_USE, "stream name already in use");
    }
    this.#checkSubjects(config);
    const created = new Date(Date.UTC(2026, 0, 1) + this.#clock).toISOString();
    const stream = new SimulatedStream(config, created);
    this.streams.set(config.name, stream);
    return stream.info();
  }

  #update(config: Config): object {
    const stream = this.stream(config.name);
    this.#checkSubjects(config);
    stream.config = config;
    return stream.info();
  }

  #checkSubjects({ name, subjects }: Config): void {
    for (const { config } of this.streams.values()) {
      if (config.name === name) continue;
      if (subjects.some((a) => config.subjects.some((b) => overlap(a, b))))
        throw new Refusal(400, 10065, "subjects overlap with an existing stream");
    }
  }

  #page(kind: string, body: Fields, show: (stream: SimulatedStream) => unknown): object {
    const filter = body["subject"] as string | undefined;
    const found = [...this.streams.values()].filter(
      ({ config }) => filter === undefined || config.subjects.some((each) => overlap(each, filter)),
    );
    const offset = Number(body["offset"] ?? 0);
    const type = `io.nats.jetstream.api.v1.stream_${kind}_response`;
    return {
      type,
      total: found.length,
      offset,
      limit: 256,
      streams: found.slice(offset).map(show),
    };
  }

  #purge(stream: SimulatedStream, below: number): object {
    for (const seq of [...stream.messages.keys()]) if (seq < below) stream.messages.delete(seq);
    return { success: true, purged: 0 };
  }

  #message(name: string, query: Fields): object {
    const { seq, subject, data, timeMs } = this.#find(this.stream(name), query);
    const time = new Date(timeMs).toISOString();
    return { message: { seq, subject, data: Buffer.from(data).toString("base64"), time } };
  }

  #find(stream: SimulatedStream, query: Fields): StoredMessage {
    const {
      seq,
      next_by_subj: next,
      last_by_subj: last,
    } = query as {
      seq?: number;
      next_by_subj?: string;
      last_by_subj?: string;
    };
    const messages = [...stream.messages.values()];
    const found =
      last !== undefined
        ? stream.lastOf(last)
        : next === undefined
          ? stream.messages.get(seq ?? 0)
          : messages.find((each) => each.seq >= (seq ?? 0) && matches(next, each.subject));
    if (found === undefined) throw new Refusal(404, E.MESSAGE_NOT_FOUND, "no message found");
    return found;
  }

  #deleteMessage(name: string, { seq }: Fields): object {
    const { messages } = this.stream(name);
    const message = messages.get(Number(seq));
    if (message !== undefined) {
      messages.delete(message.seq);
      this.removals.set(message.subject, this.#clock);
      return { success: true };
    }
    throw new Refusal(400, E.MESSAGE_NOT_REMOVED, "message not found");
  }

  #direct({ subject, data }: ClientMessage): BrokerMessage {
    const stream = this.stream(subject.split(".")[4] ?? "");
    const query = JSON.parse(decoder.decode(data)) as Fields;
    const found = stream.messages.get(Number(query["seq"]));
    if (found === undefined) return { ...answer({}), headers: headers(404, "Message Not Found") };
    const about = headers();
    about.set("Nats-Sequence", `${found.seq}`);
    about.set("Nats-Subject", found.subject);
    return { subject: "", data: found.data, headers: about, reply: "" };
  }

  #consume(name: string, config: Partial<ConsumerConfig>): object {
    const stream = this.stream(name);
    const consumer = { stream, config, next: config.opt_start_seq ?? 1, delivered: 0 };
    this.#consumers.set(config.name ?? "", consumer);
    const delivered = { stream_seq: consumer.next - 1, consumer_seq: 0 };
    const pending = this.#pending(consumer).length;
    return { name: config.name, stream_name: name, config, delivered, num_pending: pending };
  }

  #pending({ stream, config, next }: Consumer): StoredMessage[] {
    const { filter_subject: filter = ">" } = config;
    return [...stream.messages.values()].filter(
      ({ seq, subject }) => seq >= next && matches(filter, subject),
    );
  }

  /** Delivers what there is; a request for more stays open, and the schedule ends it. */
  #next({ subject, data }: ClientMessage): BrokerMessage[] {
    const name = subject.split(".").at(-1) ?? "";
    const consumer = this.#consumers.get(name);
    if (consumer === undefined) return [];
    const { batch } = JSON.parse(decoder.decode(data)) as { batch: number };
    const pending = this.#pending(consumer);
    return pending.slice(0, batch).map(({ seq, subject: to, data: stored, timeMs }, i) => {
      consumer.next = seq + 1;
      consumer.delivered += 1;
      const place = `${seq}.${consumer.delivered}.${timeMs * 1e6}.${pending.length - i - 1}`;
      const reply = `$JS.ACK.${consumer.stream.config.name}.${name}.1.${place}`;
      if (consumer.config.headers_only !== true) {
        return { subject: to, data: stored, headers: headers(), reply };
      }
      const told = headers();
      told.set("Nats-Msg-Size", `${stored.length}`);
      return { subject: to, data: NOTHING, headers: told, reply };
    });
  }
}

type Fields = Readonly<Record<string, unknown>>;

function answer(body: object): BrokerMessage {
  return {
    subject: "",
    data: encoder.encode(JSON.stringify(body)),
    headers: headers(),
    reply: "",
  };
}
