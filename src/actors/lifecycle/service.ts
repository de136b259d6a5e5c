import { setTimeout as delay } from "node:timers/promises";
import type {
  Fields,
  LifecycleVerb,
  Message,
  PserverError,
  StatusReply,
  StatusRequest,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import { LeaseView } from "../leases/lease-view.ts";
import { abort, begin } from "./begin.ts";
import { create } from "./create.ts";
import { declare } from "./declare.ts";
import { DeclaredLedger } from "./declared-ledger.ts";
import type { LifecycleDeps } from "./deps.ts";
import { finish } from "./finish.ts";
import { type TakenBack, takeBackLost } from "./lost-parameters.ts";
import { type Members, MembersAnnouncer, membersRecord, toJournalRecord } from "./members.ts";
import { enter, exit, expelLost } from "./membership.ts";
import { TRAINER_KEYS } from "./record-format.ts";
import { SessionCounter } from "./session-numbers.ts";
import { checkCounter, type EndedSessions, endSessions } from "./session-sweep.ts";
import { join, leave, renew } from "./sessions.ts";
import { SmallParameters } from "./small-parameters.ts";
import { readStatus, status } from "./status.ts";

/** Options of {@link createLifecycle}. */
export interface LifecycleOptions
  extends Pick<
      LifecycleDeps,
      "job" | "bucket" | "leases" | "owners" | "hostId" | "maxPayloadBytes"
    >,
    Partial<Pick<LifecycleDeps, "pause">> {
  /** Called after each request that may have changed the job's lifecycle; it must not throw. */
  readonly onJobChanged?: () => Promise<void>;
  /** Told of errors outside of requests, which no reply carries. */
  readonly onError?: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** Verbs that may change the job's lifecycle. */
const JOB_VERBS: readonly LifecycleVerb[] = ["begin", "finish", "abort"];

/** Members whose sessions are looked up in one check although their leases are held. */
const SAMPLE = 8;

type Verb = (deps: LifecycleDeps, trainer: string, fields: Fields) => Promise<Fields>;

const VERBS: Readonly<Record<LifecycleVerb, Verb>> = {
  ...{ join, renew, leave, begin, declare, create, finish, abort, enter, exit },
  status: (deps, _trainer, fields) => status(deps, fields),
};

/**
 * Answers the lifecycle requests of trainers. It keeps no state that decides anything: any number
 * of hosts may answer, and a host may continue what another has begun. No request is held open:
 * a trainer that waits for another one asks again.
 */
export class LifecycleService {
  readonly #deps: LifecycleDeps;
  readonly #onJobChanged: () => Promise<void>;
  #sampled = 0;

  constructor(deps: LifecycleDeps, onJobChanged: () => Promise<void>) {
    this.#deps = deps;
    this.#onJobChanged = onJobChanged;
  }

  /** Begins to watch the trainers' leases. Before that, no lost lease is noticed. */
  async start(): Promise<void> {
    await this.#deps.view.start();
  }

  /** Stops watching. */
  async close(): Promise<void> {
    await this.#deps.view.stop();
  }

  /** To be called when the broker was lost: trainers get a lease time to come back. */
  disconnected(): void {
    this.#deps.view.disconnected();
  }

  /** The trainers that keep step; none in a job without steps. */
  async members(): Promise<Members> {
    return await membersRecord.read(this.#deps);
  }

  /** Removes members that count as dead, and returns those that are left. */
  async expelLost(): Promise<Members> {
    const left = await expelLost(this.#deps, { from: this.#sampled, count: SAMPLE });
    this.#sampled = (this.#sampled + SAMPLE) % Math.max(1, left.members.length);
    return left;
  }

  /** The job's state and parameters, as a trainer's `status` request gets them. */
  async status(request: StatusRequest): Promise<StatusReply> {
    return await readStatus(this.#deps, request);
  }

  /** What the job and its trainers have declared, and their quotas. */
  async declared(): Promise<Fields> {
    await this.#deps.ledger.refresh();
    return this.#deps.ledger.show();
  }

  /** Compares the counter of sessions with the job's other records; @throws JOB_DAMAGED. */
  async checkCounter(): Promise<void> {
    await checkCounter(this.#deps);
  }

  /** Makes these shards forget trainers whose sessions have ended; see {@link endSessions}. */
  async endSessions(shards: readonly number[]): Promise<EndedSessions> {
    return await endSessions(this.#deps, shards);
  }

  /**
   * Makes what a shard with its journal in memory has lost initializable again; see {@link takeBackLost}. Journals
   * on file lose nothing.
   */
  async takeBackLost(shard: number): Promise<TakenBack> {
    if (this.#deps.job.journal === "file") return { parameters: [], isJob: false };
    const taken = await takeBackLost(this.#deps, shard);
    if (taken.isJob) await this.#onJobChanged();
    return taken;
  }

  /** Writes the present members into these shards' journals. */
  async tellMembers(shards: readonly number[]): Promise<void> {
    const members = await membersRecord.read(this.#deps);
    await this.#deps.announcer.announceTo(shards, toJournalRecord(members));
  }

  /**
   * Returns the entries of the reply to a request; `trainer` is from its subject. A refused request has
   * changed nothing; one that failed otherwise can be sent again.
   * @throws the error that the reply is to carry.
   */
  async handle(trainer: string, verb: LifecycleVerb, message: Message): Promise<Fields> {
    const reply = await VERBS[verb](this.#deps, trainer, message.fields);
    if (JOB_VERBS.includes(verb)) await this.#onJobChanged();
    return reply;
  }
}

/** Composes the service of one host. Nothing is watched before {@link LifecycleService.start}. */
export function createLifecycle(options: LifecycleOptions): LifecycleService {
  const { clock = systemClock, pause = delay, onError, onJobChanged, ...rest } = options;
  const { bucket, leases, owners, job } = options;
  const { shards, leaseMs } = job;
  const deps: LifecycleDeps = {
    ...rest,
    pause,
    view: new LeaseView({ leases, prefix: TRAINER_KEYS, leaseMs, clock }),
    counter: new SessionCounter({ bucket, pause }),
    announcer: new MembersAnnouncer({ owners, shards, onError: onError ?? (() => undefined) }),
    ledger: new DeclaredLedger({ bucket, job, clock }),
    smallParameters: new SmallParameters(job),
  };
  return new LifecycleService(deps, onJobChanged ?? (async () => undefined));
}
