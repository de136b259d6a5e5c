import { headers } from "@nats-io/transport-node";
import { hostKey } from "../../../src/actors/host/shard-claims.ts";
import { openStoredJob } from "../../../src/actors/job/open-job.ts";
import { SnapshotReader } from "../../../src/actors/journal/snapshot-store.ts";
import { jobEntry } from "../../../src/actors/lifecycle/machine.ts";
import { readAllParameters } from "../../../src/actors/lifecycle/parameter.ts";
import { BrokerShard } from "../../../src/history/broker-history.ts";
import { verifyShard } from "../../../src/history/verify.ts";
import { decodeMessage } from "../../../src/protocol/codec.ts";
import type { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { type Process, Processes } from "./processes.ts";
import { type BrokerMessage, type ClientMessage, SimulatedBroker } from "./simulated-broker.ts";
import type { Tampering } from "./simulated-connection.ts";
import { SimulatedHost } from "./simulated-host.ts";
import { changedElements, SHARDS, SimulatedJob } from "./simulated-job.ts";

/** Something that may happen while operators' commands run: how often at most, and how likely it is. */
export interface WorldEvent {
  readonly weight: number;
  left: number;
  /** Whether it may happen now; always by default. */
  readonly may?: () => boolean;
  readonly run: () => void | Promise<void>;
}

/** Share of the steps before which something happens. */
const EVENTS = 0.12;

/** A broker, jobs, hosts and operators' commands. */
export class World {
  readonly random: Random;
  readonly broker: SimulatedBroker = new SimulatedBroker();
  readonly processes: Processes;
  readonly hosts: SimulatedHost[] = [];
  /** Called before a message of a process is performed. */
  onMessage: (process: string, message: ClientMessage) => void = () => undefined;
  /** Called after the broker has performed a message of a process. */
  onPerformed: (
    process: string,
    message: ClientMessage,
    answers: readonly BrokerMessage[],
  ) => void = () => undefined;
  #names = 0;

  constructor(random: Random) {
    this.random = random;
    this.processes = new Processes(random, (process, message) => this.#take(process, message));
  }

  /** A job on the broker, whether it is there or not. */
  job(name: string, firstElement = 0): SimulatedJob {
    const connection = this.processes.instant(`trainers-${name}`);
    return new SimulatedJob(name, { broker: this.broker, connection }, firstElement);
  }

  /** Starts a process with a number behind its name. */
  start(name: string, tampering?: Tampering): Process {
    this.#names += 1;
    return this.processes.start(`${name}-${this.#names}`, tampering);
  }

  /** Whether operators see that nothing goes on, or, sometimes, do not look. */
  seemsStuck(runs: readonly Process[]): boolean {
    return this.random.chance(0.1) || !runs.some((run) => this.processes.isActive(run));
  }

  /** Starts a host of a job. */
  host(job: SimulatedJob): SimulatedHost {
    const host = new SimulatedHost(this.start(`host-${job.name}`), job, this.broker);
    this.hosts.push(host);
    return host;
  }

  /** The hosts of a job that have not crashed. */
  hostsOf(job: SimulatedJob): SimulatedHost[] {
    return this.hosts.filter((host) => host.job === job && !host.process.link.isDead);
  }

  /** Has a host of the job do something, or join it. */
  actOfHost(job: SimulatedJob): void {
    if (this.random.chance(0.2)) this.#expireLeases();
    const host = this.random.pick(this.hostsOf(job)) ?? this.host(job);
    if (host.process.isBusy) return;
    host.process.do(() => (host.hasJoined ? host.act(this.random, SHARDS) : host.join()));
  }

  /** Runs work alone and without failures, to its end. */
  async quietly<Result>(
    name: string,
    work: (process: Process) => Promise<Result>,
  ): Promise<Result> {
    this.processes.isStormy = false;
    const process = this.start(name);
    process.do(() => work(process));
    while (process.isBusy && (await this.processes.advance()));
    if (process.error !== undefined) throw process.error;
    return process.result as Result;
  }

  /** Has things happen and processes run until all have ended. */
  async storm(events: readonly WorldEvent[]): Promise<void> {
    this.processes.isStormy = true;
    for (;;) {
      const possible = events.filter(({ left }) => left > 0);
      const isIdle = !(await this.processes.advance());
      if (isIdle && possible.length === 0) return;
      if (!isIdle && !this.random.chance(EVENTS)) continue;
      const event = this.random.pickWeighted(possible.map((each) => [each.weight, each] as const));
      if (event === undefined || (!isIdle && event.may?.() === false)) continue;
      event.left -= 1;
      await event.run();
    }
  }

  /** Ends the storm: what was late comes, and hosts end. */
  calm(): void {
    this.processes.flushLate();
    for (const { process } of this.hosts) this.processes.crash(process);
    this.#expireLeases();
  }

  /** Ends the leases of hosts that have crashed. */
  #expireLeases(): void {
    for (const { job, process } of this.hosts.filter((host) => host.process.link.isDead)) {
      const bucket = job.subjects.leaseBucket();
      const leases = this.broker.streams.get(`KV_${bucket}`);
      const lease = leases?.lastOf(`$KV.${bucket}.${hostKey(process.name)}`);
      if (lease !== undefined) leases?.messages.delete(lease.seq);
    }
  }

  /**
   * Serves a job as a new host does; returns the elements changed, by shard.
   * @throws a violation if a shard cannot be served, or if entries and shards do not agree.
   */
  async serve(job: SimulatedJob): Promise<number[][]> {
    const host = this.host(job);
    await this.quietly("serve", async () => {
      await host.join();
      for (let shard = 0; shard < SHARDS; shard++) {
        await host.takeOver(shard);
        await host.fold(shard);
        const error = host.stopped.get(shard);
        promise(error === undefined, () => `job ${job.name} is stopped: ${error?.message}`);
      }
    });
    const shards = Array.from({ length: SHARDS }, (_, shard) => {
      const folded = host.folded(shard);
      promise(folded !== undefined, () => `job ${job.name}: shard ${shard} is not served`);
      return folded;
    });
    await this.#checkEntries(job, shards);
    await this.#verify(job);
    return shards.map(changedElements);
  }

  /** The names of the parameters that are initialized. */
  async readyParameters(job: SimulatedJob): Promise<ReadonlySet<string>> {
    const { bucket } = await openStoredJob(this.processes.instant("entries"), job.name);
    const all = await readAllParameters(bucket);
    const ready = all.filter(({ lifecycle }) => lifecycle.state === "ready");
    return new Set(ready.map(({ declaration }) => declaration.name));
  }

  /** Entries name as ready exactly the parameters whose blocks exist. */
  async #checkEntries(
    job: SimulatedJob,
    shards: readonly { block(name: string, index: number): { epoch: number } | undefined }[],
  ): Promise<void> {
    const { bucket } = await openStoredJob(this.processes.instant("entries"), job.name);
    const { state } = await jobEntry.read({ bucket });
    promise(state === "ready", () => `job ${job.name} is ${state}`);
    for (const { declaration, layout, lifecycle } of await readAllParameters(bucket)) {
      if (lifecycle.state !== "ready") continue;
      for (let index = 0; index < layout.blocks; index++) {
        const { name } = declaration;
        const found = shards[(layout.firstShard + index) % SHARDS]?.block(name, index)?.epoch;
        const { epoch } = lifecycle.context;
        promise(
          found === epoch,
          () => `job ${job.name}: ${name} is ready in epoch ${epoch}, its block has ${found}`,
        );
      }
    }
  }

  async #verify(job: SimulatedJob): Promise<void> {
    const connection = this.processes.instant("verify");
    const { manager, subjects, bucket, journalOf } = await openStoredJob(connection, job.name);
    for (let shard = 0; shard < SHARDS; shard++) {
      const history = new BrokerShard({
        ...{ connection, manager, subjects, bucket, inboxPrefix: subjects.hostInbox("verify") },
        ...{
          journal: journalOf(shard),
          snapshots: new SnapshotReader({ manager, subjects, shard }),
        },
      });
      const { signal } = new AbortController();
      const { places } = (await verifyShard(history, { subjects, signal })).verification;
      // A journal that lacks a record is found unreadable there, also once it was left, or lies before a snapshot.
      const bad = places.find(({ kind }) => kind === "different" || kind === "damaged");
      promise(bad === undefined, () => `job ${job.name}: verify finds ${JSON.stringify(bad)}`);
    }
  }

  #take(process: string, message: ClientMessage): BrokerMessage[] {
    this.onMessage(process, message);
    const [prefix, job, owner, shard] = message.subject.split(".");
    if (prefix !== "ps" || owner !== "owner") {
      const taken = this.broker.take(message);
      this.onPerformed(process, message, taken);
      return taken;
    }
    const { generation = 0 } = decodeMessage(message.data).fields;
    const answers = this.hosts
      .filter((host) => host.job.name === job && !host.process.link.isDead)
      .map((host) => host.answer(Number(shard), Number(generation)));
    const data = answers.find((each) => each !== undefined);
    return data === undefined ? [] : [{ subject: "", data, headers: headers(), reply: "" }];
  }
}
