import { expect } from "vitest";
import type { Clock } from "../../../src/actors/concurrent.ts";
import { type Quotas, quotasOf } from "../../../src/actors/job/job-settings.ts";
import type { Leases } from "../../../src/actors/job/leases.ts";
import type { KvBucket } from "../../../src/actors/journal/kv-bucket.ts";
import { createLifecycle, type LifecycleService } from "../../../src/actors/lifecycle/service.ts";
import {
  type BeginReply,
  decodeMessage,
  type ErrorCode,
  encodeMessage,
  type Fields,
  type Guard,
  type LifecycleVerb,
  type ParameterInfo,
  PserverError,
  parseBeginReply,
  parseParameters,
  parseStatusReply,
  type StatusReply,
  type SynchronizationInput,
  toSynchronization,
} from "../../../src/protocol/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { MemoryBucket, memoryLeases } from "../../support/memory-bucket.ts";
import { MemoryOwners } from "../../support/memory-owners.ts";

export const LEASE_MS = 3_000;
export const SHARDS = 4;
/** When the job was made that the hosts serve. */
export const MADE = "2026-11-22T10:00:00.123456789Z";

/** A declaration as it is sent. */
export function weights(name: string, changes: Fields = {}): Fields {
  return { name, dtype: "float32", shape: [8], config: {}, ...changes };
}

/** Two hosts of one job on a bucket, leases and owners in memory, and trainers that ask them. */
export class Rig {
  readonly clock: FakeClock = new FakeClock();
  readonly bucket: MemoryBucket;
  readonly leaseBucket: MemoryBucket;
  readonly owners: MemoryOwners;
  readonly hosts: readonly LifecycleService[];

  /** When the job was made that the broker holds. */
  madeNow = MADE;
  /** What hosts told beside their replies. */
  readonly errors: PserverError[] = [];

  constructor(
    options: {
      readonly bucket?: MemoryBucket;
      readonly owners?: MemoryOwners;
      readonly hosts?: number;
      readonly synchronization?: SynchronizationInput;
      readonly quotas?: Partial<Quotas>;
      readonly guard?: Guard;
      readonly maxPayloadBytes?: number;
      readonly journal?: "file" | "memory";
    } = {},
  ) {
    this.bucket = options.bucket ?? new MemoryBucket();
    this.owners = options.owners ?? new MemoryOwners();
    const { leases, bucket } = memoryLeases(LEASE_MS, this.clock);
    this.leaseBucket = bucket;
    this.hosts = Array.from({ length: options.hosts ?? 2 }, (_, i) =>
      hostOf({
        bucket: this.bucket,
        leases,
        owners: this.owners,
        clock: this.clock,
        id: `h${i}`,
        onError: (error) => void this.errors.push(error),
        madeNow: async () => this.madeNow,
        synchronization: options.synchronization ?? "async",
        journal: options.journal ?? "file",
        ...(options.maxPayloadBytes === undefined
          ? {}
          : { maxPayloadBytes: options.maxPayloadBytes }),
        ...(options.quotas === undefined ? {} : { quotas: options.quotas }),
        ...(options.guard === undefined ? {} : { guard: options.guard }),
      }),
    );
  }

  /** Lets every host watch the leases for a whole lease time, so that it may call one lost. */
  async watch(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.start()));
    await this.clock.advance(LEASE_MS + LEASE_MS / 3);
  }

  /** The reply's entries, after a trip through the codec both ways. */
  async ask(trainer: string, verb: LifecycleVerb, fields: Fields, host = 0): Promise<Fields> {
    const service = this.hosts[host];
    if (service === undefined) throw new Error(`no host ${host}`);
    const reply = await service.handle(trainer, verb, decodeMessage(encodeMessage(fields)));
    return decodeMessage(encodeMessage(reply)).fields;
  }

  /** The session of a trainer that joins as a new process. */
  async join(trainer: string, token = `${trainer} ${Math.random()}`, host = 0): Promise<number> {
    return Number((await this.ask(trainer, "join", { token }, host))["session"]);
  }

  async begin(trainer: string, session: number, host = 0): Promise<BeginReply> {
    return parseBeginReply(await this.ask(trainer, "begin", { session }, host));
  }

  async declare(
    trainer: string,
    session: number,
    epoch: number,
    parameters: readonly Fields[],
    host = 0,
  ): Promise<ParameterInfo[]> {
    const reply = await this.ask(trainer, "declare", { session, epoch, parameters }, host);
    return parseParameters(reply).filter((info) => info !== null);
  }

  async create(
    trainer: string,
    session: number,
    parameter: Fields,
    host = 0,
  ): Promise<BeginReply & { info: ParameterInfo }> {
    const reply = await this.ask(trainer, "create", { session, parameter }, host);
    const [info] = parseParameters(reply);
    if (!info) throw new Error("create answered without a parameter");
    return { ...parseBeginReply(reply), info };
  }

  async finish(
    trainer: string,
    session: number,
    epoch: number,
    more: Fields = {},
  ): Promise<Fields> {
    return await this.ask(trainer, "finish", { session, epoch, at: [], ...more });
  }

  async status(fields: Fields = {}): Promise<StatusReply> {
    return parseStatusReply(await this.ask("observer", "status", fields));
  }

  /** Joins, begins, declares, initializes and finishes the job with these parameters. */
  async makeReady(trainer: string, names: readonly string[]): Promise<number> {
    const session = await this.join(trainer);
    const { epoch } = await this.begin(trainer, session);
    const infos = await this.declare(
      trainer,
      session,
      epoch,
      names.map((name) => weights(name)),
    );
    for (const info of infos) this.owners.initialize(info);
    await this.finish(trainer, session, epoch);
    return session;
  }
}

/** One host's service. */
function hostOf(options: {
  readonly bucket: KvBucket;
  readonly leases: Leases;
  readonly owners: MemoryOwners;
  readonly clock: Clock;
  readonly id: string;
  readonly madeNow: () => Promise<string>;
  readonly onError?: (error: PserverError) => void;
  readonly synchronization?: SynchronizationInput;
  readonly quotas?: Partial<Quotas>;
  readonly guard?: Guard;
  readonly maxPayloadBytes?: number;
  readonly journal?: "file" | "memory";
}): LifecycleService {
  const { id, synchronization, quotas, guard, ...more } = options;
  const { journal = "file", ...others } = more;
  const { maxPayloadBytes = 8 * 1024 * 1024, ...rest } = others;
  return createLifecycle({
    ...rest,
    job: {
      job: "j",
      made: MADE,
      shards: SHARDS,
      journal,
      leaseMs: LEASE_MS,
      synchronization: toSynchronization(synchronization),
      quotas: quotasOf(quotas),
      ...(guard === undefined ? {} : { guard }),
    },
    hostId: id,
    maxPayloadBytes,
    pause: () => Promise.resolve(),
  });
}

/** Expects a refusal with this code whose message holds each of the words. */
export async function refused(
  code: ErrorCode,
  attempt: Promise<unknown>,
  ...words: readonly string[]
): Promise<PserverError> {
  const error: unknown = await attempt.then(
    (value) => new Error(`expected ${code}; received ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof PserverError)) throw error;
  expect(error.code, error.message).toBe(code);
  for (const word of words) expect(error.message).toContain(word);
  return error;
}
