import { foldHostRecord, type HostFold } from "../../src/actors/fold/fold-record.ts";
import { FoldTables } from "../../src/actors/fold/fold-state.ts";
import { CURRENT_RULES, KNOWN_RULES } from "../../src/actors/fold/rules.ts";
import type { Owners, WantedBlock } from "../../src/actors/job/owners-client.ts";
import type { DeclaredUsage } from "../../src/actors/job/storage-plan.ts";
import { ShardMemory } from "../../src/actors/kernel/shard-memory.ts";
import {
  blockPlaces,
  type ErrorCode,
  type Fields,
  type HostRecord,
  type ParameterInfo,
  type Position,
  PserverError,
  type RememberedTrainers,
  type ShardKnowledge,
  type TrainerSession,
} from "../../src/protocol/index.ts";

/** Any that keeps members: a shard takes them whatever the job's trainers keep. */
const SYNCHRONIZATION = { mode: "ssp", trainers: 1, staleness: 1 } as const;

/** The shards of a job in memory: which blocks are there, and what hosts have appended. */
export class MemoryOwners implements Owners {
  readonly #blocks = new Map<number, Map<string, number>>();
  readonly #seqs = new Map<number, number>();
  readonly #known = new Map<number, HostFold>();
  /** Every host record, in order. */
  readonly appended: { readonly shard: number; readonly record: HostRecord }[] = [];
  /** The records of these verbs, in order. */
  of(...verbs: readonly HostRecord["verb"][]): { shard: number; record: HostRecord }[] {
    return this.appended.filter(({ record }) => verbs.includes(record.verb));
  }

  /** Every position that a check had to wait for. */
  readonly awaited: { readonly shard: number; readonly at: Position | undefined }[] = [];
  /** Every snapshot that was asked for, in order. */
  readonly snapshots: { readonly shard: number; readonly at: Position }[] = [];
  /** Why no snapshot can be stored; undefined while it can. */
  snapshotFailure: ErrorCode | undefined;
  /** Bytes the broker can hold. */
  storageBytes: number = Number.POSITIVE_INFINITY;
  /** Bytes of values that the hosts can hold more. */
  memoryBytes: number = Number.POSITIVE_INFINITY;
  /** Whom each shard remembers. */
  readonly remembered = new Map<number, readonly TrainerSession[]>();
  /** The highest session that the shards know of from hosts. */
  toldUpTo = 0;
  /** True while no owner answers. */
  silent = false;

  /** Puts blocks of a parameter there, as its initializer's records do; all of them by default. */
  initialize(parameter: ParameterInfo, indices?: readonly number[]): void {
    for (const { index, shard } of blockPlaces(parameter.layout)) {
      if (indices?.includes(index) === false) continue;
      this.#advance(shard);
      this.#shard(shard).set(`${parameter.name} ${index}`, parameter.epoch);
    }
  }

  /** Takes all blocks from a shard, as the loss of its journal and snapshots does. */
  lose(shard: number): void {
    this.#blocks.delete(shard);
  }

  /** Makes all shards forget what hosts have told them. */
  forget(): void {
    this.#known.clear();
  }

  /** Where a shard's journal stands. */
  position(shard: number): Position {
    return { generation: 1, seq: this.#seqs.get(shard) ?? 0 };
  }

  async check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<{ position: Position; missing: [string, number][] }> {
    if (this.silent) throw new PserverError("NO_OWNER", `shard ${shard} has no owner`, { shard });
    this.awaited.push({ shard, at: want.at });
    const held = this.#shard(shard);
    const missing = want.blocks.filter(
      ([name, index, epoch]) => held.get(`${name} ${index}`) !== epoch,
    );
    return {
      position: this.position(shard),
      missing: missing.map(([name, index]): [string, number] => [name, index]),
    };
  }

  async trainers(shard: number): Promise<RememberedTrainers> {
    return { trainers: this.remembered.get(shard) ?? [], toldUpTo: this.toldUpTo };
  }

  async known(shard: number): Promise<ShardKnowledge> {
    if (this.silent) throw new PserverError("NO_OWNER", `shard ${shard} has no owner`, { shard });
    const { more: _more, ...known } = this.#tables(shard).known("", Number.POSITIVE_INFINITY);
    return { ...known, sweptUpTo: Math.max(known.sweptUpTo, this.toldUpTo) };
  }

  async append(shard: number, record: HostRecord): Promise<Position> {
    this.appended.push({ shard, record });
    foldHostRecord(this.#fold(shard), record, undefined);
    this.#advance(shard);
    return this.position(shard);
  }

  async snapshot(shard: number, at: Position): Promise<Fields> {
    const code = this.snapshotFailure;
    if (code !== undefined) throw new PserverError(code, `shard ${shard} cannot be stored`);
    this.snapshots.push({ shard, at });
    return { shard, ...at };
  }

  async checkMemory(valueBytes: readonly number[]): Promise<void> {
    const needed = valueBytes.reduce((sum, bytes) => sum + bytes, 0);
    if (needed <= this.memoryBytes) return;
    throw new PserverError("NO_MEMORY", `${needed} bytes do not fit`, { expected: needed });
  }

  async reserveSpace({ heldBytes }: DeclaredUsage): Promise<void> {
    if (heldBytes <= this.storageBytes) return;
    throw new PserverError(
      "NO_SPACE",
      `storage for ${this.storageBytes} bytes; received ${heldBytes}`,
      {
        expected: this.storageBytes,
        received: heldBytes,
      },
    );
  }

  /** What a shard knows from hosts' records, as its fold keeps it. */
  #tables(shard: number): FoldTables {
    return this.#fold(shard).tables;
  }

  #fold(shard: number): HostFold {
    const known = this.#known.get(shard);
    if (known !== undefined) return known;
    const memory = ShardMemory.create();
    const job = "j";
    const tables = new FoldTables({ job, shard, memory, hooks: {}, knownRules: KNOWN_RULES });
    tables.takeRules({ rules: CURRENT_RULES, synchronization: SYNCHRONIZATION });
    const fold = { tables, memory };
    this.#known.set(shard, fold);
    return fold;
  }

  #shard(shard: number): Map<string, number> {
    const held = this.#blocks.get(shard) ?? new Map<string, number>();
    this.#blocks.set(shard, held);
    return held;
  }

  #advance(shard: number): void {
    this.#seqs.set(shard, (this.#seqs.get(shard) ?? 0) + 1);
  }
}
