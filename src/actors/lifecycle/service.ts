import { setTimeout as delay } from "node:timers/promises";
import type {
  Fields,
  LifecycleVerb,
  Message,
  ParameterInfo,
  PserverError,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Records } from "../jetstream/kv-bucket.ts";
import { LeaseView } from "../leases/lease-view.ts";
import type { Leases } from "../leases/leases.ts";
import { abort, begin } from "./begin.ts";
import { checkCounter } from "./counted.ts";
import { create } from "./create.ts";
import { declare } from "./declare.ts";
import { DeclaredLedger } from "./declared-ledger.ts";
import { type EndedSessions, endSessions } from "./end-sessions.ts";
import { finish } from "./finish.ts";
import { TRAINER_KEYS } from "./keys.ts";
import { readMembers } from "./members.ts";
import { MembersAnnouncer } from "./members-announcer.ts";
import { type Members, toJournalRecord } from "./members-record.ts";
import { enter, exit, expelLost } from "./membership.ts";
import { SessionCounter } from "./session-counter.ts";
import { join, leave, renew } from "./sessions.ts";
import type { JobSettings, Owners, Surroundings } from "./settings.ts";
import { readStatus, status } from "./status.ts";

/** What a {@link LifecycleService} needs. */
export interface LifecycleOptions {
  readonly job: JobSettings;
  /** The job's bucket and its bucket of leases: one truth for all hosts. */
  readonly records: Records;
  readonly leases: Leases;
  readonly owners: Owners;
  readonly hostId: string;
  readonly maxPayloadBytes: number;
  /** Called after each request that may have changed the job's own lifecycle; it must not throw. */
  readonly onJobChanged?: () => Promise<void>;
  /** Told what went wrong beside the requests, in which nobody is told. */
  readonly onError?: (error: PserverError) => void;
  readonly clock?: Clock;
  /** Waits between tries of a compare-and-swap. */
  readonly pause?: (delayMs: number) => Promise<void>;
}

/** Verbs that may change the job's own lifecycle. */
const JOB_VERBS: readonly LifecycleVerb[] = ["begin", "finish", "abort"];

/** Members whose sessions are looked at in one look although their leases are there. */
const SAMPLE = 8;

/**
 * Answers the lifecycle requests of trainers. It keeps no state that decides anything: any number
 * of hosts may answer, and a host may answer what another has begun. No request is held open:
 * whoever waits for another trainer asks again.
 */
export class LifecycleService {
  readonly #around: Surroundings;
  readonly #onJobChanged: () => Promise<void>;
  #sampled = 0;

  constructor(options: LifecycleOptions) {
    const { clock, pause = delay, onError = () => undefined, onJobChanged, ...rest } = options;
    this.#onJobChanged = onJobChanged ?? (async () => undefined);
    const view = new LeaseView({
      leases: options.leases,
      prefix: TRAINER_KEYS,
      leaseMs: options.job.leaseMs,
      ...(clock === undefined ? {} : { clock }),
    });
    const counter = new SessionCounter(options.records, pause);
    const { owners, job } = options;
    const announcer = new MembersAnnouncer({ owners, shards: job.shards, onError });
    const ledger = new DeclaredLedger(clock ?? systemClock);
    this.#around = { ...rest, pause, view, counter, announcer, ledger };
  }

  /** Begins to watch the trainers' leases. Before that no lost one is noticed. */
  async start(): Promise<void> {
    await this.#around.view.start();
  }

  /** Ends watching. */
  async close(): Promise<void> {
    await this.#around.view.stop();
  }

  /** Tells that the broker was lost, so that trainers get a lease time to come back. */
  disconnected(): void {
    this.#around.view.disconnected();
  }

  /** Who keeps step; nobody in a job without steps. */
  async members(): Promise<Members> {
    return await readMembers(this.#around);
  }

  /** Removes members that are dead, as far as this host can know; those that are left. */
  async expelLost(): Promise<Members> {
    const left = await expelLost(this.#around, { from: this.#sampled, count: SAMPLE });
    this.#sampled = (this.#sampled + SAMPLE) % Math.max(1, left.members.length);
    return left;
  }

  /** The parameters of these names, in their order; null where nothing is known of one. */
  async parameters(names: readonly string[]): Promise<readonly (ParameterInfo | null)[]> {
    return (await readStatus(this.#around, { names })).parameters;
  }

  /** What the job and its trainers have declared, and their quotas. */
  async declared(): Promise<Fields> {
    await this.#around.ledger.look(this.#around);
    return this.#around.ledger.show(this.#around);
  }

  /** Compares the counter of sessions with the job's other records; @throws JOB_DAMAGED. */
  async checkCounter(): Promise<void> {
    await checkCounter(this.#around);
  }

  /** Makes room for trainers in these shards; see {@link endSessions}. */
  async endSessions(shards: readonly number[]): Promise<EndedSessions> {
    return await endSessions(this.#around, shards);
  }

  /** Tells these shards' journals the present members. */
  async tellMembers(shards: readonly number[]): Promise<void> {
    const members = await readMembers(this.#around);
    await this.#around.announcer.announceTo(shards, toJournalRecord(members));
  }

  /**
   * The entries of the reply to a request; `trainer` is from its subject. A refused request has
   * changed nothing; one that failed otherwise can be sent again.
   * @throws every error a reply may carry.
   */
  async handle(trainer: string, verb: LifecycleVerb, message: Message): Promise<Fields> {
    const reply = await this.#answer(trainer, verb, message);
    if (JOB_VERBS.includes(verb)) await this.#onJobChanged();
    return reply;
  }

  async #answer(trainer: string, verb: LifecycleVerb, message: Message): Promise<Fields> {
    const around = this.#around;
    const { fields } = message;
    switch (verb) {
      case "join":
        return await join(around, trainer, fields);
      case "renew":
        return await renew(around, trainer, fields);
      case "leave":
        return await leave(around, trainer, fields);
      case "begin":
        return await begin(around, trainer, fields);
      case "declare":
        return await declare(around, trainer, fields);
      case "create":
        return await create(around, trainer, fields);
      case "finish":
        return await finish(around, trainer, fields);
      case "abort":
        return await abort(around, trainer, fields);
      case "enter":
        return await enter(around, trainer, fields);
      case "exit":
        return await exit(around, trainer, fields);
      case "status":
        return await status(around, fields);
    }
  }
}
