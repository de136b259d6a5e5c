import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/transport-node";
import { Deadline } from "../../client/deadline.ts";
import { Requests } from "../../client/requests.ts";
import { NatsWire } from "../../client/wire.ts";
import { encodeMessage, type Fields } from "../../protocol/codec.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import {
  type ParameterInfo,
  parseStatusReply,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/lifecycle-messages.ts";
import { PARAMETERS_PER_REQUEST_MAX } from "../../protocol/limits.ts";
import { quoteName } from "../../protocol/names.ts";
import { readStatusPages } from "../../protocol/status-pages.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import { parseVersionsReply } from "../../protocol/versions.ts";
import { KnownVersions } from "./known-versions.ts";
import { type Participants, parseParticipants } from "./participants.ts";

/** How long to hope for a host where nobody listens: one that starts takes longer anyway. */
const NOBODY_PATIENCE_MS = 1_000;

/** What questions to hosts need. */
export interface HostRequestsOptions {
  /** Stays the caller's to close. */
  readonly connection: NatsConnection;
  readonly job: string;
  /** The id to ask under; permissions of the broker may be bound to it. */
  readonly trainer: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Questions to the hosts of a job that need no session: the asker does not join the job. */
export class HostRequests {
  readonly #options: HostRequestsOptions;
  readonly #subjects: JobSubjects;
  readonly #requests: Requests;
  #failure: PserverError | undefined;
  readonly #deadlines = new Set<Deadline>();

  constructor(options: HostRequestsOptions) {
    this.#options = options;
    this.#subjects = new JobSubjects(options.job);
    const inbox = `${this.#subjects.inbox(options.trainer)}.${randomUUID()}`;
    const wire = new NatsWire(options.connection, inbox, (error) => {
      this.#failure = error;
      for (const deadline of this.#deadlines) deadline.end(error);
    });
    this.#requests = new Requests(wire);
  }

  /**
   * State of the job, and parameters: those named, or a page in the order of names.
   * @throws NO_HOST if nobody answers in time.
   */
  async status(request: StatusRequest = {}): Promise<StatusReply> {
    const subject = this.#subjects.lifecycle(this.#options.trainer, "status");
    return parseStatusReply(await this.#ask("status", subject, { ...request }));
  }

  /** State of the job and all its parameters, ready or not, in the order of names. */
  everything(): Promise<{ status: StatusReply; parameters: ParameterInfo[] }> {
    return readStatusPages((request) => this.status(request));
  }

  /**
   * One parameter, which is ready.
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
    throw new PserverError(
      "UNKNOWN_PARAMETER",
      `no parameter is called ${quoteName(name)}`,
      details,
    );
  }

  /** Hosts and trainers of the job, as one of the hosts sees them. */
  async participants(): Promise<Participants> {
    const subject = this.#subjects.control(this.#options.trainer, "hosts");
    return parseParticipants(await this.#ask("hosts", subject, {}));
  }

  /**
   * Versions of these parameters' blocks, as far as they are known now. A broker that permits no such
   * question, and hosts that do not know it, leave all of them unknown.
   */
  async versions(names: readonly string[]): Promise<KnownVersions> {
    const known = new KnownVersions();
    const subject = this.#subjects.control(this.#options.trainer, "versions");
    try {
      for (let from = 0; from < names.length; from += PARAMETERS_PER_REQUEST_MAX) {
        const page = names.slice(from, from + PARAMETERS_PER_REQUEST_MAX);
        const fields = await this.#ask("versions", subject, { names: page });
        known.add(page, parseVersionsReply(fields, page.length));
      }
    } catch (error) {
      const { code, message } = ensureError(error);
      if (code !== "DENIED" && code !== "BAD_MESSAGE") throw error;
      known.refuse(message);
    }
    return known;
  }

  async #ask(what: string, subject: string, entries: Fields): Promise<Fields> {
    if (this.#failure !== undefined) throw this.#failure;
    const { timeoutMs, signal, job } = this.#options;
    const deadline = new Deadline(what, { timeoutMs, signal });
    this.#deadlines.add(deadline);
    try {
      return await this.#requests.ask({
        subject,
        body: () => encodeMessage(entries),
        read: ({ fields }) => fields,
        deadline,
        nobody: () => new PserverError("NO_HOST", `no host of job ${job} answers`, { job }),
        patienceMs: Math.min(timeoutMs, NOBODY_PATIENCE_MS),
      });
    } finally {
      deadline.dispose();
      this.#deadlines.delete(deadline);
    }
  }
}
