import type { StreamInfo } from "@nats-io/jetstream";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import { encodeEntry } from "../../../src/actors/journal/kv-bucket.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import { decodeMessage, encodeMessage, type Fields } from "../../../src/protocol/codec.ts";
import type { Position } from "../../../src/protocol/index.ts";
import type { Variant } from "./fork-story.ts";
import type { BrokerMessage } from "./simulated-broker.ts";
import type { Tampering } from "./simulated-connection.ts";

/** A story, by the command that it is about. */
export type StoryName = "archive" | "fork" | "recover" | "rewind";

/** A defect of a command, the story in which it shows, and what the oracle that is there for it says. */
export interface PlantedBug {
  readonly story: StoryName;
  readonly variant: Variant;
  readonly found: RegExp;
}

/** Sends messages without some of their conditions. */
function unconditionally(subject: RegExp, ...conditions: string[]): Tampering {
  return {
    sent: (message) =>
      subject.test(message.subject) && message.headers !== undefined
        ? { ...message, headers: without(message.headers, conditions) }
        : message,
  };
}

function without(from: MsgHdrs, names: readonly string[]): MsgHdrs {
  const kept = headers();
  for (const key of from.keys()) if (!names.includes(key)) kept.set(key, from.get(key));
  return kept;
}

/** A variant in which the commands of this name behave so. */
function tampered(command: string, make: () => Tampering): Variant {
  return { tampering: (name) => (name === command ? make() : {}) };
}

const [encoder, decoder] = [new TextEncoder(), new TextDecoder()];
const LAST_ID = "Nats-Expected-Last-Msg-Id";
const LAST_SEQ = "Nats-Expected-Last-Subject-Sequence";

/** Has a removal see every stream as it was when it listed them. */
function lookingOnce(): Tampering {
  const listed = new Map<string, string>();
  return {
    answered: ({ subject }, [first]) => {
      if (first === undefined || !/STREAM\.(LIST|INFO)/.test(subject)) return first ? [first] : [];
      const body = JSON.parse(decoder.decode(first.data)) as Partial<StreamInfo> & {
        streams?: StreamInfo[];
      };
      for (const { config, created } of body.streams ?? []) listed.set(config.name, created);
      const created = listed.get(body.config?.name ?? "");
      if (created === undefined) return [first];
      return [{ ...first, data: encoder.encode(JSON.stringify({ ...body, created })) }];
    },
  };
}

interface StoredAnswer {
  readonly message?: { readonly subject: string; readonly data: string };
}

/** Has manifests name no fallbacks. */
function namingNothing(): Tampering {
  return {
    sent: (message) =>
      message.subject.endsWith(".manifest")
        ? {
            ...message,
            data: encodeMessage({ ...decodeMessage(message.data).fields, fallbacks: [] }),
          }
        : message,
  };
}

/** Has the state of each stream stay as it was first read. */
function readingEndsOnce(): Tampering {
  const read = new Map<string, BrokerMessage>();
  return {
    answered: ({ subject }, answers) => {
      const [first] = answers;
      if (!/STREAM\.INFO\.PS_.*_\d+$/.test(subject) || first === undefined) return answers;
      const known = read.get(subject) ?? first;
      // A stream that was not there yet is looked for again.
      if (!decoder.decode(first.data).includes("not found")) read.set(subject, known);
      return [known];
    },
  };
}

/** The entry in the answer to a read of a bucket; undefined if it is another answer, or not of this key. */
function entryIn(key: string, answer: BrokerMessage | undefined): Fields | undefined {
  if (answer === undefined) return undefined;
  const body = JSON.parse(decoder.decode(answer.data)) as StoredAnswer;
  if (body.message?.subject.endsWith(`.${key}`) !== true) return undefined;
  return JSON.parse(Buffer.from(body.message.data, "base64").toString()) as Fields;
}

/** Puts another message in the place of the one in the answer to a read of a stream. */
function withStored(answer: BrokerMessage, data: Uint8Array): BrokerMessage {
  const body = JSON.parse(decoder.decode(answer.data)) as StoredAnswer;
  const message = { ...body.message, data: Buffer.from(data).toString("base64") };
  return { ...answer, data: encoder.encode(JSON.stringify({ message })) };
}

/** Has a rewind take every later generation of a shard for one of its own. */
function takingGenerations(): Tampering {
  let id: unknown;
  return {
    sent: (message) => {
      const isPlan = message.subject.endsWith(".rewind");
      if (isPlan) ({ id } = JSON.parse(decoder.decode(message.data)) as { id: unknown });
      return message;
    },
    answered: ({ subject }, answers) => {
      const [first] = answers;
      if (!/MSG\.GET\..*_SNAPSHOT$/.test(subject) || id === undefined) return answers;
      const body = JSON.parse(decoder.decode(first?.data)) as StoredAnswer;
      if (first === undefined || body.message?.subject.endsWith(".manifest") !== true)
        return answers;
      const { fields } = decodeMessage(Buffer.from(body.message.data, "base64"));
      const { generation } = fields;
      if (generation === 1) return answers;
      return [withStored(first, encodeMessage({ ...fields, rewind: { id, generation } }))];
    },
  };
}

/** Has a rewind to a point execute the plan that is noted as if it were one to that point. */
function executingAnother(): Tampering {
  return {
    answered: (_sent, answers) => {
      const [first] = answers;
      const plan = entryIn("rewind", first);
      if (first === undefined || plan === undefined) return answers;
      const { crc: _crc, at, ...rest } = plan as Fields & { at: readonly Position[] };
      const earlier = at.map(({ generation, seq }) => ({ generation, seq: Math.max(seq - 2, 3) }));
      const text = encodeEntry("rewind", { ...rest, at: earlier });
      return [withStored(first, encoder.encode(text))];
    },
  };
}

/** The subject of an archiver's registration. */
const REGISTRATION = /^\$KV\.[^.]+\.(archiver\..*)$/;

/** Has an archiver find in its registration what it has written itself last, whoever has written it since. */
function findingItsOwn(): Tampering {
  let own: Uint8Array | undefined;
  return {
    sent: (message) => {
      if (REGISTRATION.test(message.subject)) own = message.data;
      return message;
    },
    answered: ({ subject, data }, answers) => {
      const [first] = answers;
      const isRead = subject.includes("MSG.GET") && decoder.decode(data).includes(".archiver.");
      if (!isRead || own === undefined || first === undefined) return answers;
      return decoder.decode(first.data).includes("error") ? answers : [withStored(first, own)];
    },
  };
}

/** Has an archiver say that it has the snapshots up to the last record that it has. */
function tellingSnapshots(): Tampering {
  return {
    sent: (message) => {
      const [, key] = REGISTRATION.exec(message.subject) ?? [];
      if (key === undefined) return message;
      const { crc: _crc, ...entry } = JSON.parse(decoder.decode(message.data)) as Fields;
      const shards = (entry["shards"] as number[][]).map(([generation, seq]) => [
        ...[generation, seq],
        ...[generation, seq],
      ]);
      return { ...message, data: encoder.encode(encodeEntry(key, { ...entry, shards })) };
    },
  };
}

/** Reads a history as if the records around a gap followed each other. */
function withoutGaps(history: ShardHistory): ShardHistory {
  return {
    shard: history.shard,
    spans: async () => {
      const spans = await history.spans();
      return spans.map((span) => {
        const own = spans.filter(({ generation }) => generation === span.generation);
        return { ...span, lastSeq: own.at(-1)?.lastSeq ?? span.lastSeq };
      });
    },
    snapshots: () => history.snapshots(),
    piece: (ref) => history.piece(ref),
    read: (after, toSeq, signal) => history.read(after, toSeq, signal),
    lastUpTo: (span, timeMs) => history.lastUpTo(span, timeMs),
  };
}

/** Defects that the oracles must find, by what is wrong. */
export const PLANTED_BUGS: Readonly<Record<string, PlantedBug>> = {
  "an archiver that renews its registration whoever has taken it over": {
    story: "archive",
    variant: tampered("archive", () => unconditionally(REGISTRATION, LAST_SEQ)),
    found: /trims shard|hosts were told/,
  },
  "an archiver that takes the registration of another run for its own": {
    story: "archive",
    variant: tampered("archive", findingItsOwn),
    found: /trims shard|hosts were told/,
  },
  "an archiver that does not note which records it lacks": {
    story: "archive",
    variant: tampered("archive", () => ({
      isDropped: ({ name, path }) => name === "rename" && path.endsWith(".gap"),
    })),
    found: /segment was lost|is refused with JOURNAL_DAMAGED/,
  },
  "an archiver that says that it has snapshots which it has not copied": {
    story: "archive",
    variant: tampered("archive", tellingSnapshots),
    found: /snapshot .* though hosts were told/,
  },
  "a reader that goes on behind a gap from a snapshot in it": {
    story: "archive",
    variant: { reading: withoutGaps },
    found: /is kept, and not replayed|is replayed wrongly/,
  },
  "a fork that writes its entries whatever others have written": {
    story: "fork",
    variant: tampered("fork", () => unconditionally(/^\$KV/, LAST_ID)),
    found: /its block has|shard \d has/,
  },
  "a fork that finds out only with its last write that it was overtaken": {
    story: "fork",
    variant: tampered("fork", () => unconditionally(/^\$KV.*\.(param|job)/, LAST_ID)),
    found: /its block has|shard \d has/,
  },
  "a fork that writes manifests without a compare-and-swap": {
    story: "fork",
    variant: tampered("fork", () => unconditionally(/manifest$/, LAST_SEQ)),
    found: /shard \d has|is stopped|verify finds/,
  },
  "a fork that removes the job after any error": {
    story: "fork",
    variant: { removesOnAnyError: true },
    found: /removes .* of a job in service/,
  },
  "a recovery that does not name what it gives up": {
    story: "recover",
    variant: tampered("recover", namingNothing),
    found: /is lost/,
  },
  "a recovery that reads the end of a journal before it sets it aside": {
    story: "recover",
    variant: tampered("recover", readingEndsOnce),
    found: /is lost/,
  },
  "a removal that looks at streams only once": {
    story: "fork",
    variant: { ...tampered("remove", lookingOnce), removals: 15 },
    found: /which is another one by now/,
  },
  "a rewind that takes a later generation for the sign that a shard has gone back": {
    story: "rewind",
    variant: tampered("rewind", takingGenerations),
    found: /is not at its cut/,
  },
  "a rewind that goes back to another point than the plan that it completes": {
    story: "rewind",
    variant: tampered("rewind", executingAnother),
    found: /is not at its cut/,
  },
};
