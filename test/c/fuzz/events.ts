/** What a fuzz input is made of: the events of fake-broker.h, with what well-behaved hosts say. */
import { encodeMessage } from "../../../src/protocol/codec.ts";

/** The kinds of calls in replies.c, in its order. */
const CALLS = [
  "initialize",
  "create",
  "look",
  "get",
  "get-encoded",
  "send-gradients",
  "send-rows",
  "overwrite",
  "use-parts",
  "keep-step",
  "get-many",
  "get-changes",
  "initialize-many",
  "get-grouped",
  "send-grouped",
  "use-rounds",
] as const;
export type Calls = (typeof CALLS)[number];

/** The kinds of events in fake-broker.h. */
export const REPLY = 0;
const RAW_REPLY = 1;
export const NOBODY = 2;
const MESSAGE = 3;
/** As a reply that others follow. */
export const EARLY_REPLY = 4;
export const BROKEN_PIPE = 5;
export const RECONNECT = 6;
export const ERROR = 7;

export const ASYNC = 0;
export const SYNC = 1;
export const SSP = 2;
export const SYNC_WITH_BACKUPS = 4;
/** To be added to a mode: the job takes batches. */
export const BATCHES = 6;
/** Trainers contribute to fragments. */
export const ROUNDS = 0x40;
export const SCRIPTED_JOIN = 0x80;

export const W_BYTES = Uint8Array.of(0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0);
export const ENCODED_BYTES = Uint8Array.of(0, 0x3c, 0, 0xc1);
/** The same in int8 and e3m0: a scale, and codes. */
export const INT8_BYTES = Uint8Array.of(0, 0, 0x80, 0x3c, 0x40, 0x81);
export const E3M0_BYTES = Uint8Array.of(0, 0, 0x20, 0x40, 0xf6);

export type Fields = Record<string, unknown>;

export function event(kind: number, content: Uint8Array | string = ""): Buffer {
  const bytes = Buffer.from(content as string);
  return Buffer.concat([Buffer.of(kind, bytes.length & 255, bytes.length >> 8), bytes]);
}

export const reply = (fields: Fields, data?: Uint8Array) =>
  event(REPLY, encodeMessage(fields, data));

export function message(place: string, fields: Fields): Buffer {
  return event(MESSAGE, Buffer.concat([Buffer.from(`${place}\n`), encodeMessage(fields)]));
}

export function input(calls: Calls, mode: number, ...events: Buffer[]): Buffer {
  return Buffer.concat([Buffer.of(CALLS.indexOf(calls), mode), ...events]);
}

function parameter(name: string, firstNumber: number, shape: readonly number[]): Fields {
  const elements = shape.reduce((product, size) => product * size, 1);
  const config = {
    optimizer: { name: "sgd" },
    sparse: shape[1] === 2,
    stalenessScaling: shape[1] === 2,
  };
  const layout = { elements, blockElements: 2, blocks: elements / 2, firstShard: 15, shards: 16 };
  return { name, dtype: "float32", shape, config, epoch: 2, firstNumber, ready: true, layout };
}

export const W = parameter("w", 7, [2, 1]);
export const EMBEDDING = parameter("emb:sparse-0", 11, [2, 2]);

/** `w`, in the fragment `f`. */
export const IN_FRAGMENT: Fields = {
  ...W,
  config: { ...(W["config"] as Fields), fragment: "f" },
  layout: { ...(W["layout"] as Fields), pinned: true },
};

/** The versions of fragments. */
export const versions = (...fragments: unknown[]) => {
  const account = [1, 1, 0, 0].map((count) => [count, 10, 100]);
  return reply({ generation: 1, seq: 900, fragments, account });
};

export function status(...parameters: (Fields | null)[]): Buffer {
  const at = [{ generation: 1, seq: 3 }];
  const job = { state: "ready", epoch: 2, by: "worker/1", shards: 16 };
  return reply({ ...job, parameters, more: false, at });
}

export const stored = (shard: number, seq: number) =>
  event(RAW_REPLY, JSON.stringify({ stream: `PS_mnist_${shard}`, seq, domain: "x" }));

export const refused = (code: number, number: number) =>
  event(RAW_REPLY, JSON.stringify({ error: { code, err_code: number, description: "no" } }));

export const applied = (shard: number, ...outcomes: unknown[][]) =>
  message("applied", { shard, generation: 1, session: 41, outcomes });

export function pulled(more: Fields = {}, data = W_BYTES): Buffer {
  const fields = { epoch: 2, dtype: "float32", ...more, generation: 1, seq: 900, version: 17 };
  return reply(fields, data);
}

/**
 * A chunk of the reply to a batched read; its values are zeros, eight bytes for each version but 0, unless `bytes` says
 * how many there are. Negative: so many bytes of the versions are missing, too.
 */
export function piece(from: number, versions: readonly number[], more: Fields = {}): Buffer {
  const { kind = REPLY, bytes, ...entries } = more as { kind?: number; bytes?: number } & Fields;
  const valueBytes = bytes ?? 8 * versions.filter((version) => version > 0).length;
  const column = new Uint8Array(Float64Array.from(versions).buffer);
  const data = new Uint8Array(column.length + valueBytes);
  data.set(column.subarray(0, data.length));
  const position = { generation: 1, seq: 900 };
  const head = { from, more: kind !== REPLY, ...position, entries: versions.length, ...entries };
  return event(kind, encodeMessage(head, data));
}

export const failed = (code: string, details: Fields = {}) =>
  reply({ error: { code, message: `${code} it is`, details } });

export const stepped = (step: number) =>
  reply({ generation: 1, seq: 900, revision: 3, step, waitingFor: ["a", "b:1"] });

export const begun = (isSelected: boolean, more: Fields = {}) =>
  reply({ selected: isSelected, state: "initializing", epoch: 2, by: "worker/1", ...more });

export const finished = () =>
  reply({ state: "ready", epoch: 2, at: [{ shard: 15, generation: 1, seq: 3 }] });
