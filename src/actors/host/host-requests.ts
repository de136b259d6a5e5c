import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import {
  CONTROL_VERBS,
  type ControlVerb,
  decodeMessage,
  encodeError,
  encodeMessage,
  ensureError,
  type Fields,
  HOSTS_QUEUE,
  isOneOf,
  type JobSubjects,
  LIFECYCLE_VERBS,
  type LifecycleVerb,
  type Message,
  PserverError,
} from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import {
  FairServer,
  type LaneOptions,
  type RefusalBudget,
  replyThatFits,
} from "../owner/fair-server.ts";
import type { ControlService } from "./control-service.ts";

/**
 * Answers one request: returns the entries of the reply, or throws the error that the reply carries. Before that it
 * may send messages with `tell`, which go to inboxes of the asker only.
 */
type RequestHandler = (
  asker: string,
  verb: string,
  message: Message,
  tell: (inbox: string, entries: Fields) => void,
) => Promise<Fields>;

/** One kind of requests: those to one subject, whose last tokens are the asker's id and the verb. */
interface RequestKind {
  readonly subject: string;
  /** Whether every host gets each request; if not, one host does. */
  readonly isForAll?: boolean;
  /** The verbs that are taken, in the order in which they are served. */
  readonly lanes: readonly (LaneOptions & { readonly verbs: readonly string[] })[];
  readonly handle: RequestHandler;
  /** Called for each request from another account of the broker; none of them is answered. */
  readonly onOtherAccount?: (trainer: string) => void;
}

/** The connection on which the requests to a host arrive and are answered. */
interface RequestConnection {
  readonly connection: NatsConnection;
  /** Counts the refusals of every trainer on this connection. */
  readonly refusals: RefusalBudget;
  readonly subjects: JobSubjects;
}

/**
 * Returns the lanes of lifecycle requests: those that keep sessions alive are served first, those that only read
 * last.
 */
function lifecycleLanes(): RequestKind["lanes"] {
  const sessions: readonly LifecycleVerb[] = ["join", "renew", "leave", "enter", "exit"];
  const reading: readonly LifecycleVerb[] = ["status"];
  const writing = LIFECYCLE_VERBS.filter((verb) => ![...sessions, ...reading].includes(verb));
  return [
    { verbs: sessions, atOnce: 64, atOnceEach: 8 },
    { verbs: writing, atOnce: 32, atOnceEach: 8 },
    { verbs: reading, atOnce: 16, atOnceEach: 4 },
  ];
}

/**
 * Returns the lanes of control requests. These take long and cost much, so few may wait and saves run one at a time.
 * Requests that only read do not wait for snapshots.
 */
function controlLanes(): RequestKind["lanes"] {
  const saving: readonly ControlVerb[] = ["save"];
  const reading: readonly ControlVerb[] = ["hosts", "versions"];
  const others = CONTROL_VERBS.filter((verb) => ![...saving, ...reading].includes(verb));
  const bounds = { atOnce: 16, atOnceEach: 2, requestBytes: 1024 * 1024 };
  return [
    { verbs: reading, ...bounds },
    { verbs: others, ...bounds },
    {
      verbs: saving,
      atOnce: 1,
      requestBytes: 4 * 1024 * 1024 - 64 * 1024,
      retryAfterMs: 2_000,
    },
  ];
}

/** Begins to answer the lifecycle and control requests of a job; the caller closes what is returned. */
export function serveRequests(
  reception: RequestConnection,
  lifecycle: LifecycleService,
  control: ControlService,
  onOtherAccount: (trainer: string) => void,
): HostRequests[] {
  const { subjects } = reception;
  const handle: RequestHandler = (...request) => control.handle(...request);
  const kinds: RequestKind[] = [
    {
      subject: subjects.allLifecycle(),
      lanes: lifecycleLanes(),
      onOtherAccount,
      handle: async (trainer, verb, message) => {
        if (isOneOf(LIFECYCLE_VERBS, verb)) return await lifecycle.handle(trainer, verb, message);
        throw noSuchVerb(verb);
      },
    },
    { subject: subjects.allControl(), lanes: controlLanes(), handle },
    {
      subject: subjects.allStops(),
      isForAll: true,
      lanes: [{ verbs: ["stop"], atOnce: 16, atOnceEach: 2 }],
      handle,
    },
  ];
  return kinds.map((kind) => new HostRequests(reception, kind));
}

/** Receives the requests of one kind. Each request goes to one host of the job, or to all, as the kind says. */
export class HostRequests {
  readonly #reception: RequestConnection;
  readonly #kind: RequestKind;
  readonly #server: FairServer;
  readonly #subscription: Subscription;

  constructor(reception: RequestConnection, kind: RequestKind) {
    this.#reception = reception;
    this.#kind = kind;
    this.#server = new FairServer(reception.refusals, kind.lanes);
    this.#subscription = reception.connection.subscribe(kind.subject, {
      ...(kind.isForAll === true ? {} : { queue: HOSTS_QUEUE }),
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
  }

  /** Receives no more requests, refuses waiting ones with BUSY, and waits for those in work. */
  async close(): Promise<void> {
    this.#subscription.unsubscribe();
    await this.#server.close();
  }

  #receive(message: Msg): void {
    const { subjects } = this.#reception;
    const { lanes, onOtherAccount } = this.#kind;
    const reply = message.reply ?? "";
    const sender = this.#sender(message.subject);
    if (sender === undefined) return;
    const { id: from, verb } = sender;
    // A reply to any other subject would let the asker write where only this host may.
    if (!subjects.mayAnswer(reply, from)) {
      if (subjects.isOfOtherAccount(reply)) onOtherAccount?.(from);
      return;
    }
    const refuse = (error: PserverError): void => this.#respond(reply, encodeError(error));
    const lane = lanes.findIndex(({ verbs }) => verbs.includes(verb));
    if (lane < 0) {
      this.#server.refuse(from, () => refuse(noSuchVerb(verb)));
      return;
    }
    const run = async (data: Uint8Array): Promise<void> =>
      this.#respond(reply, await this.#reply(from, verb, data));
    this.#server.take({ from, data: message.data, run, refuse }, lane);
  }

  #sender(subject: string): { id: string; verb: string } | undefined {
    try {
      return this.#reception.subjects.parseSender(subject);
    } catch {
      // The subject names no asker, so there is nobody to answer.
      return undefined;
    }
  }

  async #reply(asker: string, verb: string, data: Uint8Array): Promise<Uint8Array> {
    const { subjects } = this.#reception;
    const tell = (inbox: string, entries: Fields): void => {
      if (subjects.isTrainerInbox(inbox, asker)) this.#respond(inbox, encodeMessage(entries));
    };
    try {
      return encodeMessage(await this.#kind.handle(asker, verb, decodeMessage(data), tell));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }

  #respond(reply: string, bytes: Uint8Array): void {
    const { connection } = this.#reception;
    if (connection.isClosed()) return;
    connection.publish(reply, replyThatFits(bytes, payloadBytesMaxOf(connection)));
  }
}

function noSuchVerb(received: string): PserverError {
  return new PserverError("BAD_MESSAGE", `no such verb: ${received}`, { received });
}
