import type { NatsConnection } from "@nats-io/transport-node";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import { openExistingBucket } from "../../../src/actors/journal/kv-bucket.ts";
import { decodeManifest, type StoredManifest } from "../../../src/actors/journal/manifest.ts";
import { loadSnapshot } from "../../../src/actors/journal/snapshot-store.ts";
import { jobEntry, type ShardPosition } from "../../../src/actors/lifecycle/machine.ts";
import { type Parameter, parameterEntry } from "../../../src/actors/lifecycle/parameter.ts";
import {
  type RewindOptions,
  type RewoundJob,
  rewindJob,
} from "../../../src/history/continue/rewind-job.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { JobSubjects, type Position } from "../../../src/protocol/index.ts";
import { encodeHostRecord } from "../../../src/protocol/messages/host-records.ts";
import { draftRecord, type TrainerRecord } from "../../../src/protocol/messages/records.ts";
import { promise } from "../violation.ts";
import type { Process } from "./processes.ts";
import { matches, type SimulatedBroker } from "./simulated-broker.ts";

export const SHARDS = 2;
/** The parameter that is trained, with a block in each shard. */
const TRAINED = "w";
/** Elements of a block: each update adds 1 to an element of its own. */
const ELEMENTS = 128;
/** More than a parameter has blocks. */
const NUMBERS_EACH = 1000;
const CONFIG = toConfig();
const HEAD = { session: 1, reply: "", dtype: "int64" as const };

/** An update that a journal has stored. */
export interface Update extends Position {
  readonly shard: number;
  readonly element: number;
  /** When it was stored, by the broker's clock. */
  readonly time: number;
  /** When the job's bucket was made: after a removal another job may have the name. */
  readonly life: string;
}

/** A parameter that a trainer has created. */
export interface Created {
  readonly name: string;
  readonly time: number;
}

/** A job as its trainers know it: they store updates and parameters at once, whatever processes are doing. */
export class SimulatedJob {
  readonly name: string;
  readonly subjects: JobSubjects;
  readonly updates: Update[] = [];
  readonly created: Created[] = [];
  readonly #broker: SimulatedBroker;
  /** The first block number that was given last. */
  #lastNumber = 0;
  readonly #connection: NatsConnection;
  #n = 0;
  #element: number;

  /** `firstElement`: that of the first update, as a fork has those of the job that it was made from. */
  constructor(
    name: string,
    deps: { broker: SimulatedBroker; connection: NatsConnection },
    firstElement = 0,
  ) {
    this.name = name;
    this.subjects = new JobSubjects(name);
    this.#broker = deps.broker;
    this.#connection = deps.connection;
    this.#element = firstElement;
  }

  /** When the job's bucket was made; "" if there is none. */
  get life(): string {
    return this.#broker.streams.get(`KV_${this.subjects.bucket()}`)?.created ?? "";
  }

  /** Adds 1 to an element of its own in a shard's block, unless no journal takes it. */
  push(shard: number): void {
    const element = this.#element;
    if (element >= ELEMENTS) return;
    const data = new BigInt64Array(ELEMENTS);
    data[element] = 1n;
    const operation = { op: "mix", alpha: 1, beta: 1 } as const;
    const at = this.#store(shard, "push", TRAINED, shard, data, { norm: 0, operation, epoch: 1 });
    if (at === undefined) return;
    this.#element += 1;
    this.updates.push({ shard, element, time: this.#broker.now, life: this.life, ...at });
  }

  /** Creates a parameter of one block, or initializes one again that a rewind has taken back. */
  async create(name: string, shard: number): Promise<void> {
    const layout = { elements: ELEMENTS, blockElements: ELEMENTS, blocks: 1, firstShard: shard };
    const made = await this.#declare(name, { ...layout, shards: SHARDS });
    if (made) this.created.push({ name, time: this.#broker.now });
  }

  /** Makes the trained parameter, and says that the job is initialized. */
  async initialize(): Promise<void> {
    const elements = SHARDS * ELEMENTS;
    const layout = { elements, blockElements: ELEMENTS, blocks: SHARDS, firstShard: 0 };
    await this.#declare(TRAINED, { ...layout, shards: SHARDS });
    const context = { epoch: 1, trainer: "a", session: 1, at: [], sealed: 0, revised: 0 };
    await jobEntry.change(await this.#entries(), () => ({ state: "ready", context }));
  }

  /** The ends of the journals. */
  cut(): Position[] {
    return Array.from({ length: SHARDS }, (_, shard) => {
      const { generation } = this.newest(shard).manifest;
      const stream = this.#broker.stream(this.subjects.journalStream(shard, generation));
      return { generation, seq: stream.lastSeq };
    });
  }

  /** The newest manifest of a shard. */
  newest(shard: number): StoredManifest {
    const newest = this.#broker
      .stream(this.subjects.snapshotStream())
      .lastOf(this.subjects.manifest(shard));
    promise(newest !== undefined, () => `job ${this.name}, shard ${shard}: no manifest is left`);
    return { seq: newest.seq, manifest: decodeManifest(newest.data) };
  }

  /** Rebuilds a shard as it was at a position, from all that there ever was. */
  async stateAt(shard: number, { generation, seq }: Position): Promise<Shard> {
    const { subjects } = this;
    const { ever } = this.#broker.stream(subjects.snapshotStream());
    const base = [...ever.values()]
      .filter((each) => matches(subjects.manifest(shard), each.subject))
      .map(({ data }) => decodeManifest(data))
      .findLast((each) => each.generation === generation && each.seq <= seq);
    promise(base !== undefined, () => `no snapshot before ${generation}:${seq}`);
    const read = (ref: { readonly seq: number }): Promise<Uint8Array> =>
      Promise.resolve(ever.get(ref.seq)?.data ?? new Uint8Array(0));
    const { shard: state } = await loadSnapshot(
      { subjects, shard, store: { read } },
      { manifest: base },
    );
    while (state.seq < seq) {
      const stream = this.#broker.everOf(subjects.journalStream(shard, generation));
      const record = stream.ever.get(state.seq + 1);
      promise(record !== undefined, () => `record ${generation}:${state.seq + 1} was never there`);
      state.apply({ seq: record.seq, subject: record.subject, payload: record.data });
    }
    return state;
  }

  /** The subject under which the job's bucket notes the plan of a rewind. */
  get planSubject(): string {
    return `$KV.${this.subjects.bucket()}.rewind`;
  }

  /** Whether a rewind is not complete. */
  get hasPlan(): boolean {
    const bucket = this.#broker.stream(`KV_${this.subjects.bucket()}`);
    return bucket.lastOf(this.planSubject) !== undefined;
  }

  /** Does what `pserver rewind` does: goes back to a cut, or completes the rewind that is noted. */
  async rewind(
    { connection, name: host }: Pick<Process, "connection" | "name">,
    at?: readonly Position[],
    onStage: NonNullable<RewindOptions["onStage"]> = () => undefined,
  ): Promise<RewoundJob> {
    return await rewindJob({
      ...{ connection, host, job: this.name, at, onStage, signal: new AbortController().signal },
      rebuild: async (shard, position) => {
        // Rebuilding takes its time, too.
        await connection.request("$JS.API.INFO");
        return await this.stateAt(shard, position);
      },
    });
  }

  /** Dependencies for entries of the job's bucket. */
  async #entries() {
    const bucket = await openExistingBucket(this.#connection, this.subjects.bucket());
    return { bucket, pause: () => Promise.resolve() };
  }

  /** Declares and initializes a parameter; returns whether it was to be, and a journal has taken it. */
  async #declare(name: string, layout: Parameter["layout"]): Promise<boolean> {
    const deps = await this.#entries();
    const known = await parameterEntry(name).read(deps);
    if (known?.lifecycle.state === "ready") return false;
    const epoch = (known?.lifecycle.context.epoch ?? 0) + 1;
    const shape = [layout.elements];
    const declaration = { name, dtype: "int64" as const, shape, config: CONFIG };
    this.#lastNumber += NUMBERS_EACH;
    const firstNumber = this.#lastNumber;
    const parameters = [{ ...declaration, layout, epoch, firstNumber }];
    const payload = encodeHostRecord({ verb: "declare", trainer: "a", parameters });
    const at: ShardPosition[] = [];
    for (let index = 0; index < layout.blocks; index++) {
      const shard = layout.firstShard + index;
      if (this.#publish(this.subjects.hostLog(shard, "declare"), payload) === undefined)
        return false;
      const place = { shape, start: index * ELEMENTS, count: ELEMENTS, config: CONFIG, epoch };
      const stored = this.#store(shard, "init", name, index, new BigInt64Array(ELEMENTS), place);
      if (stored === undefined) return false;
      at.push({ shard, ...stored });
    }
    const context = { epoch, trainer: "a", session: 1, at, sealed: 0, revised: 0 };
    await parameterEntry(name).change(deps, (before) => ({
      ...{ declaration, layout, firstNumber, blocksMax: layout.blocks, jobEpoch: 0 },
      ...{ lifecycle: { state: "ready", context }, revision: before?.revision ?? 0 },
    }));
    return true;
  }

  #store(
    shard: number,
    verb: "init" | "push",
    parameter: string,
    index: number,
    values: BigInt64Array,
    fields: object,
  ): Position | undefined {
    this.#n += 1;
    const record = { verb, ...HEAD, n: this.#n, done: this.#n - 1, ...fields } as TrainerRecord;
    const draft = draftRecord(record, values.byteLength);
    draft.data.set(new Uint8Array(values.buffer));
    const subject = this.subjects.log(shard, "a", verb, parameter, index);
    return this.#publish(subject, sealMessage(draft));
  }

  #publish(subject: string, data: Uint8Array): Position | undefined {
    const [ack] = this.#broker.take({ subject, data });
    if (ack === undefined) return undefined;
    const { stream, seq } = JSON.parse(new TextDecoder().decode(ack.data)) as {
      stream: string;
      seq: number;
    };
    const { generation } = this.subjects.parseJournalStream(stream);
    return { generation, seq };
  }
}

/** The elements of the trained parameter that updates of a shard have changed. */
export function changedElements(shard: Shard, number: number): number[] {
  const block = shard.block(TRAINED, number);
  promise(block !== undefined, () => `shard ${number}: the trained block is gone`);
  const bytes = block.values().slice();
  const values = [...new BigInt64Array(bytes.buffer)];
  promise(
    values.every((value) => value === 0n || value === 1n),
    () => `shard ${number}: an update was applied twice`,
  );
  return values.flatMap((value, element) => (value === 1n ? [element] : []));
}
