import { setTimeout as delay } from "node:timers/promises";
import {
  type Fields,
  type LifecycleVerb,
  laterPosition,
  type Message,
  type Position,
  type PserverError,
  parametersPerRequest,
  parseStatusRequest,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../concurrent.ts";
import { LeaseView } from "../job/leases.ts";
import { blockCounter } from "./block-numbers.ts";
import { create, type DeclareDeps, declare, SmallParameters } from "./declare.ts";
import { DeclaredLedger } from "./declared-ledger.ts";
import { enter, exit, expelLost } from "./enter-exit.ts";
import { abort, begin, finish, type TakenBack, takeBackLost } from "./initialization.ts";
import { JoinedTrainers } from "./joined-trainers.ts";
import { TRAINER_KEYS } from "./lock.ts";
import { jobEntry, type Lifecycle, type ShardPosition } from "./machine.ts";
import { type Members, MembersAnnouncer, membersEntry, toJournalRecord } from "./members.ts";
import { effectiveState, infoOf, type Parameter, readyAt } from "./parameter.ts";
import {
  checkCounter,
  type EndedSessions,
  endSessions,
  join,
  leave,
  renew,
  requireSameJob,
  sessionCounter,
} from "./sessions.ts";
import { ShardComparison } from "./shard-comparison.ts";

/** Parameters of the catalog, whatever their state, and whether more follow. */
interface ParameterPage {
  readonly parameters: readonly (Parameter | undefined)[];
  readonly more: boolean;
}

const START: Position = { generation: 1, seq: 0 };

/**
 * Replies with the job's state and the parameters asked for: by name, or a page in order of names. Only
 * parameters that are ready or being initialized are shown, none whose initialization ended without a
 * finish. `at` holds the ends of the journals when the job and the parameters shown became ready.
 */
async function status(deps: DeclareDeps, fields: Fields): Promise<Fields> {
  return { ...(await readStatus(deps, parseStatusRequest(fields))) };
}

/** As {@link status}, for a request that was parsed already. */
async function readStatus(deps: DeclareDeps, request: StatusRequest): Promise<StatusReply> {
  const { catalog } = deps.ledger;
  let isFresh = false;
  if (request.names !== undefined) {
    const job = await jobEntry.read(deps);
    isFresh = await catalog.follow(job);
    const known = request.names.map((name) => catalog.get(name));
    // What is ready stays as it is until the job's entry is revised.
    if (known.every((parameter) => parameter && effectiveState(parameter, job) === "ready")) {
      return replyOf(deps, request, { parameters: known, more: false }, job);
    }
  }
  const asksForAny = request.names !== undefined || request.limit !== undefined;
  if (asksForAny && !isFresh) await catalog.refresh();
  // Read last, so that it is not older than the `jobEpoch` in the parameters' entries.
  const job = await jobEntry.read(deps);
  for (let after = request.after ?? ""; ; ) {
    const found = find(deps, { ...request, after });
    const reply = replyOf(deps, request, found, job);
    const last = found.parameters.at(-1);
    // A page without any parameter to show must not look like the last one.
    if (!found.more || reply.parameters.length > 0 || last === undefined) return reply;
    after = last.declaration.name;
  }
}

function replyOf(
  deps: DeclareDeps,
  request: StatusRequest,
  found: ParameterPage,
  job: Lifecycle,
): StatusReply {
  const alive = found.parameters.map((parameter) =>
    parameter !== undefined && effectiveState(parameter, job) !== "uninitialized"
      ? parameter
      : null,
  );
  const counted = alive.filter((parameter) => parameter !== null);
  const { epoch, trainer, at } = job.context;
  const { shards } = deps.job;
  return {
    state: job.state,
    epoch,
    by: trainer,
    shards,
    parameters: (request.names === undefined ? counted : alive).map(
      (parameter) => parameter && infoOf(parameter, job),
    ),
    more: found.more,
    at: latestPositions(shards, [at, ...counted.map((parameter) => readyAt(parameter, job))]),
  };
}

/** Looks the parameters up. A page is cut where the broker takes no larger reply; names are answered whole. */
function find(deps: DeclareDeps, request: StatusRequest): ParameterPage {
  const { catalog } = deps.ledger;
  const { names, after = "", limit } = request;
  if (names !== undefined) {
    return { parameters: names.map((name) => catalog.get(name)), more: false };
  }
  if (limit === undefined) return { parameters: [], more: false };
  return catalog.page(after, Math.min(limit, parametersPerRequest(deps.maxPayloadBytes)));
}

/** Returns the latest position on each shard; none if no position is known at all. */
function latestPositions(
  shards: number,
  lists: readonly (readonly ShardPosition[])[],
): readonly Position[] {
  if (lists.every((list) => list.length === 0)) return [];
  const latest: Position[] = new Array(shards).fill(START);
  for (const list of lists) {
    for (const { shard, generation, seq } of list) {
      latest[shard] = laterPosition(latest[shard], { generation, seq });
    }
  }
  return latest;
}

/** Options of {@link createLifecycle}. */
interface LifecycleOptions
  extends Pick<
      DeclareDeps,
      "job" | "bucket" | "leases" | "owners" | "hostId" | "maxPayloadBytes" | "madeNow"
    >,
    Partial<Pick<DeclareDeps, "pause">> {
  /** Called after each request that may have changed the job's lifecycle; it must not throw. */
  readonly onJobChanged?: () => Promise<void>;
  /** Called with errors outside of requests, which no reply carries. */
  readonly onError?: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** Verbs that may change the job's lifecycle. */
const JOB_VERBS: readonly LifecycleVerb[] = ["begin", "finish", "abort"];

/** Verbs that decide by the job's entries; the others only end something or keep it as it is. */
const DECIDING_VERBS: readonly LifecycleVerb[] = [
  ...(["join", "begin", "declare", "create", "finish", "enter", "status"] as const),
];

/** Members whose sessions are looked up in one check although their leases are held. */
const LOOK_UPS_PER_CHECK = 8;

type Verb = (deps: DeclareDeps, trainer: string, fields: Fields) => Promise<Fields>;

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
  readonly #deps: DeclareDeps;
  readonly #onJobChanged: () => Promise<void>;
  #sampled = 0;

  constructor(deps: DeclareDeps, onJobChanged: () => Promise<void>) {
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

  /**
   * To be called when the broker was lost: trainers get a lease time to come back, and the job's entries are compared
   * with its shards again.
   */
  disconnected(): void {
    this.#deps.comparison.forget();
    this.#deps.view.disconnected();
  }

  /** How many trainers held their leases when these were last listed. */
  get liveTrainers(): number {
    return this.#deps.view.present.size;
  }

  /** The trainers that keep step; none in a job without steps. */
  async members(): Promise<Members> {
    return await membersEntry.read(this.#deps);
  }

  /** Removes members that count as dead, and returns those that are left. */
  async expelLost(): Promise<Members> {
    const left = await expelLost(this.#deps, { from: this.#sampled, count: LOOK_UPS_PER_CHECK });
    this.#sampled = (this.#sampled + LOOK_UPS_PER_CHECK) % Math.max(1, left.members.length);
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

  /**
   * Compares the job's entries with each other and with what its shards know. Returns whether all shards have answered.
   * @throws JOB_DAMAGED
   */
  async checkEntries(): Promise<boolean> {
    await checkCounter(this.#deps);
    return await this.#deps.comparison.require();
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
    const members = await membersEntry.read(this.#deps);
    await this.#deps.announcer.announceTo(shards, toJournalRecord(members));
  }

  /**
   * Returns the entries of the reply to a request; `trainer` is from its subject. A refused request has
   * changed nothing; one that failed in another way can be sent again.
   * @throws the error that the reply is to carry.
   */
  async handle(trainer: string, verb: LifecycleVerb, message: Message): Promise<Fields> {
    await requireSameJob(this.#deps, trainer, message.fields);
    if (DECIDING_VERBS.includes(verb)) await this.#deps.comparison.require();
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
  const ledger = new DeclaredLedger({ bucket, job, clock });
  const deps: DeclareDeps = {
    ...rest,
    pause,
    comparison: new ShardComparison({ bucket, pause, job, owners, ledger }),
    view: new LeaseView({ leases, prefix: TRAINER_KEYS, leaseMs, clock }),
    counter: sessionCounter({ bucket, pause }),
    numbers: blockCounter({ bucket, pause }, ledger),
    joined: new JoinedTrainers({ bucket, clock, leaseMs }),
    announcer: new MembersAnnouncer({ owners, shards, onError: onError ?? (() => undefined) }),
    ledger,
    smallParameters: new SmallParameters(shards),
  };
  return new LifecycleService(deps, onJobChanged ?? (async () => undefined));
}
