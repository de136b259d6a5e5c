import { randomUUID } from "node:crypto";
import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import { encodeMessage, type Fields } from "../../protocol/codec.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { PARAMETERS_PER_REQUEST_MAX } from "../../protocol/limits.ts";
import {
  type ParameterInfo,
  parseStatusReply,
  readStatusPages,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/messages/lifecycle-messages.ts";
import { type BlockVersions, parseVersionsReply } from "../../protocol/messages/reads.ts";
import { quoteName } from "../../protocol/names.ts";
import { HOSTS_QUEUE, JobSubjects } from "../../protocol/subjects.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import { type CallOptions, Calls, Deadline } from "../calls/calls.ts";
import { connectBroker } from "../connect.ts";
import {
  type ConnectionOverrides,
  type Environment,
  resolveConnection,
} from "../wire/broker-settings.ts";
import { NatsWire, Requests } from "../wire/wire.ts";
import { type Participants, parseParticipants } from "./participants.ts";

/** A subject that a role must be able to use. */
interface RoleSubject {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
  /** The group that shares a subscription. */
  readonly queue?: string;
}

/**
 * Roles that the broker's permissions can allow a user. A host needs `store` and `answers`, of one user or of
 * two.
 */
export const ROLES = ["trainer", "observer", "store", "answers"] as const;

/** One of the roles. */
export type Role = (typeof ROLES)[number];

/** What a user may do. */
export interface Permissions {
  readonly roles: ReadonlySet<Role>;
  /** What the broker refuses of each role. */
  readonly refused: Readonly<Record<Role, readonly string[]>>;
}

/** No job has a shard or block of this number: nobody listens there and no journal stores it. */
const UNUSED_NUMBER = 999_999_999;

/**
 * Tries what the broker's permissions let this user do, in each role. Uses only subjects that no stream
 * stores and nobody listens to.
 */
async function findPermissions(
  connection: NatsConnection,
  subjects: JobSubjects,
  trainer: string,
): Promise<Permissions> {
  const needs = roleNeeds(subjects, trainer);
  const all = await findRefused(connection, Object.values(needs).flat());
  const refusedOf = (role: Role): string[] =>
    [...new Set(needs[role].map(nameOf))].filter((name) => all.has(name));
  const refused = {
    trainer: refusedOf("trainer"),
    observer: refusedOf("observer"),
    store: refusedOf("store"),
    answers: refusedOf("answers"),
  };
  return { roles: new Set(ROLES.filter((role) => refused[role].length === 0)), refused };
}

function roleNeeds(subjects: JobSubjects, trainer: string): Readonly<Record<Role, RoleSubject[]>> {
  const publish = (subject: string): RoleSubject => ({ operation: "publish", subject });
  const listen = (subject: string): RoleSubject => ({ operation: "subscription", subject });
  const share = (subject: string): RoleSubject => ({ ...listen(subject), queue: HOSTS_QUEUE });
  const observer = [
    listen(`${subjects.inbox(trainer)}.doctor`),
    publish(subjects.pull("doctor", UNUSED_NUMBER, trainer)),
  ];
  return {
    observer,
    trainer: [
      ...observer,
      publish(subjects.log(UNUSED_NUMBER, trainer, "push", "doctor", 0)),
      publish(subjects.batch(UNUSED_NUMBER, trainer)),
      publish(subjects.clock(UNUSED_NUMBER, trainer)),
      publish(subjects.contribute(UNUSED_NUMBER, trainer)),
      publish(subjects.outcome(UNUSED_NUMBER, trainer)),
      publish(subjects.step(UNUSED_NUMBER, trainer)),
      publish(subjects.read(UNUSED_NUMBER, trainer)),
      publish(subjects.fragments(UNUSED_NUMBER, trainer)),
    ],
    store: [
      listen(`${subjects.hostInbox("doctor")}.doctor`),
      publish(subjects.hostLog(UNUSED_NUMBER, "floor")),
      publish(subjects.owner(UNUSED_NUMBER, "doctor", "check")),
      publish(subjects.presence("doctor")),
      publish("$JS.API.INFO"),
    ],
    answers: [
      share(subjects.lifecycle(trainer, "status")),
      share(subjects.control(trainer, "hosts")),
      share(subjects.presence("doctor")),
      listen(subjects.block("doctor", UNUSED_NUMBER)),
      ...Object.values(subjects.shardRequests(UNUSED_NUMBER)).map(listen),
      publish(`${subjects.inbox("doctor")}.doctor`),
    ],
  };
}

/** Uses each subject once; returns the names of those that the broker refuses. */
async function findRefused(
  connection: NatsConnection,
  needs: readonly RoleSubject[],
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  // Runs until the caller closes the connection.
  void watchRefusals(connection, refused);
  const subscriptions = needs
    .filter(({ operation }) => operation === "subscription")
    .map((need) =>
      connection.subscribe(need.subject, {
        ...(need.queue === undefined ? {} : { queue: need.queue }),
        callback: (error) => {
          if (error instanceof PermissionViolationError) refused.add(nameOf(need));
        },
      }),
    );
  for (const { operation, subject } of needs) {
    if (operation === "publish") connection.publish(subject);
  }
  // The broker handles a connection's lines in order, so all refusals come before the answer to this flush.
  // After a second flush, the loop that receives them has seen all.
  await connection.flush();
  for (const subscription of subscriptions) subscription.unsubscribe();
  await connection.flush();
  return refused;
}

async function watchRefusals(connection: NatsConnection, refused: Set<string>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === "error" && status.error instanceof PermissionViolationError) {
      refused.add(nameOf(status.error));
    }
  }
}

function nameOf({ operation, subject }: Pick<RoleSubject, "operation" | "subject">): string {
  return `${operation} ${subject}`;
}

/** How long to wait for a host if nobody listens; starting one takes longer anyway. */
const NO_HOST_GRACE_MS = 1_000;

/** Versions of parameters, as far as the hosts know them. */
export interface KnownVersions {
  /** By name. A parameter without an entry is not initialized, or its versions are not known. */
  readonly versions: ReadonlyMap<string, BlockVersions>;
  /** Shards whose owners did not answer. */
  readonly silentShards: readonly number[];
  /** Why the hosts could not be asked; absent if they could. */
  readonly refusal?: string;
}

/** The broker that an admin is connected to. */
export interface ConnectedBroker {
  readonly address: string;
  readonly roundTripMs: number;
  /** Version of nats-server; "" if the broker does not say. */
  readonly version: string;
  /** The largest message that it takes; 0 if it does not say. */
  readonly payloadBytesMax: number;
}

/** Dependencies of {@link JobAdmin}. */
interface JobAdminDeps {
  /** The connection, which the admin closes. */
  readonly connection: NatsConnection;
  readonly requests: Pick<Requests, "ask">;
  readonly calls: Calls;
  readonly subjects: JobSubjects;
  /** The id to ask under; permissions of the broker may be bound to it. */
  readonly trainer: string;
  /** Options of each call. */
  readonly callOptions: CallOptions;
}

/**
 * Asks the hosts of a job what needs no session: the asker does not join the job. Made by `openAdmin`. Each
 * call ends after the `timeoutMs` given there, with NO_HOST if no host answers.
 */
export class JobAdmin {
  readonly #deps: JobAdminDeps;

  constructor(deps: JobAdminDeps) {
    this.#deps = deps;
  }

  /** The id under which it asks. */
  get trainer(): string {
    return this.#deps.trainer;
  }

  /** Asks for the state of the job, and for parameters: those named, or a page in the order of names. */
  async status(request: StatusRequest = {}): Promise<StatusReply> {
    const { subjects, trainer } = this.#deps;
    const subject = subjects.lifecycle(trainer, "status");
    return parseStatusReply(await this.#ask("status", subject, { ...request }));
  }

  /** Asks for the state of the job and all its parameters, ready or not, in the order of names. */
  statusAndParameters(): Promise<{ status: StatusReply; parameters: ParameterInfo[] }> {
    return readStatusPages((request) => this.status(request));
  }

  /**
   * Asks for one parameter, which must be ready.
   * @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED.
   */
  async parameter(name: string): Promise<ParameterInfo> {
    const { parameters, state } = await this.status({ names: [name] });
    const info = parameters[0] ?? undefined;
    if (info?.ready) return info;
    const details = { parameter: name, state };
    if (info !== undefined || state !== "ready") {
      const message = `${quoteName(name)} is not initialized; the job is ${state}`;
      throw new PserverError("NOT_INITIALIZED", message, details);
    }
    const message = `no parameter is called ${quoteName(name)}`;
    throw new PserverError("UNKNOWN_PARAMETER", message, details);
  }

  /** Asks for hosts, shards and trainers of the job, as one of the hosts sees them. */
  async participants(): Promise<Participants> {
    const { subjects, trainer } = this.#deps;
    return parseParticipants(await this.#ask("hosts", subjects.control(trainer, "hosts"), {}));
  }

  /**
   * Asks for the versions of these parameters' blocks. None is known if the broker does not permit the
   * request, or if the hosts are too old to answer it.
   */
  async versions(names: readonly string[]): Promise<KnownVersions> {
    const versions = new Map<string, BlockVersions>();
    const silent = new Set<number>();
    const { subjects, trainer } = this.#deps;
    const subject = subjects.control(trainer, "versions");
    try {
      for (let from = 0; from < names.length; from += PARAMETERS_PER_REQUEST_MAX) {
        const page = names.slice(from, from + PARAMETERS_PER_REQUEST_MAX);
        const fields = await this.#ask("versions", subject, { names: page });
        const reply = parseVersionsReply(fields, page.length);
        for (const [i, name] of page.entries()) {
          const blockVersions = reply.versions[i] ?? null;
          if (blockVersions !== null) versions.set(name, blockVersions);
        }
        for (const shard of reply.silent) silent.add(shard);
      }
      return { versions, silentShards: [...silent] };
    } catch (error) {
      const { code, message } = ensureError(error);
      if (code !== "DENIED" && code !== "BAD_MESSAGE") throw error;
      return { versions, silentShards: [...silent], refusal: message };
    }
  }

  /** Describes the broker, after one round trip to it. */
  async broker(): Promise<ConnectedBroker> {
    const { connection } = this.#deps;
    return {
      address: connection.getServer(),
      roundTripMs: await connection.rtt(),
      version: connection.info?.version ?? "",
      payloadBytesMax: payloadBytesMaxOf(connection),
    };
  }

  /** Finds out what the broker permits this user to do in the job; changes nothing in the job. */
  permissions(): Promise<Permissions> {
    const { connection, subjects, trainer } = this.#deps;
    return findPermissions(connection, subjects, trainer);
  }

  /** Closes the connection. */
  close(): Promise<void> {
    return this.#deps.connection.close();
  }

  #ask(what: string, subject: string, fields: Fields): Promise<Fields> {
    const { requests, calls, callOptions, subjects } = this.#deps;
    const { job } = subjects;
    return calls.run(what, callOptions, (deadline) =>
      requests.ask({
        subject,
        body: () => encodeMessage(fields),
        read: (message) => message.fields,
        deadline,
        nobody: () => new PserverError("NO_HOST", `no host of job ${job} answers`, { job }),
        retryMs: NO_HOST_GRACE_MS,
      }),
    );
  }
}

/** Where to connect for the administration of a job. */
export interface AdminConnectionOptions {
  readonly job: string;
  /** Settings that are left out come from the environment. */
  readonly broker: ConnectionOverrides;
  readonly environment: Environment;
  /** Time to reach the broker. */
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** How to ask the hosts of a job. */
export interface AdminOptions extends AdminConnectionOptions {
  /** The id to ask under; permissions of the broker may be bound to it. */
  readonly trainer: string;
  /** Time for each call. */
  readonly timeoutMs: number;
}

/**
 * Connects to the broker for questions to the hosts of a job, without joining it. The caller closes
 * the admin.
 * @throws NO_BROKER or DENIED if the broker cannot be used; ABORTED.
 */
export async function openAdmin(options: AdminOptions): Promise<JobAdmin> {
  const { job, trainer, timeoutMs, signal } = options;
  const subjects = new JobSubjects(job);
  const connection = await openAs(options, trainer, subjects.inbox(trainer));
  const calls = new Calls();
  const inbox = `${subjects.inbox(trainer)}.${randomUUID()}`;
  const wire = NatsWire.open(connection, inbox, (error) => calls.fail(error));
  const callOptions = { timeoutMs, signal };
  const requests = Requests.open(wire, false);
  return new JobAdmin({ connection, requests, calls, subjects, trainer, callOptions });
}

/**
 * Opens a connection such as hosts of the job have, for the JetStream API: streams, their messages and their
 * removal. The caller closes it.
 * @param name appears in the inbox and in the broker's list of connections.
 * @throws as {@link openAdmin}.
 */
export function openStoreConnection(
  options: AdminConnectionOptions,
  name: string,
): Promise<NatsConnection> {
  return openAs(options, name, new JobSubjects(options.job).hostInbox(name));
}

async function openAs(
  { job, broker, environment, connectTimeoutMs, signal }: AdminConnectionOptions,
  name: string,
  inboxPrefix: string,
): Promise<NatsConnection> {
  const role = { name: `pserver ${job} ${name}`, inboxPrefix };
  const settings = resolveConnection({ ...role, ...broker }, environment);
  const deadline = Deadline.start("connect", { timeoutMs: connectTimeoutMs, signal });
  return await connectBroker(settings, deadline).finally(() => deadline.dispose());
}
