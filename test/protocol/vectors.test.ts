// Proves that the implementation still gives the bytes of the shared vectors, which clients in other
// languages are tested with, and that the files can be used: everything in them is encoded and read
// from the files alone. After an intended change of the format, run `vitest run test/protocol/vectors.test.ts -u`
// and review every line that changed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, readCrc } from "../../src/protocol/codec.ts";
import { bytesOf, type Encoding, encodedBytes } from "../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../src/protocol/encoding/encoding.ts";
import { isErrorCode } from "../../src/protocol/errors.ts";
import { readCases } from "../client/pull/read-vectors.ts";
import { callCases } from "../client/push/call-vectors.ts";
import { reactionCases } from "../client/reaction-vectors.ts";
import { journalAckCases } from "../client/wire/journal-ack-vectors.ts";
import { elementEncodingCases, groupCases } from "./encoding/encoding-vectors.ts";
import { codeOf } from "./refusal.ts";
import {
  answerCases,
  encodingCases,
  layoutCases,
  lifecycleCases,
  nameCases,
  recordCases,
  refusedCases,
  subjectCases,
} from "./vector-cases.ts";
import { fromJson, toFile, toHex } from "./vector-json.ts";

const DIRECTORY = join(import.meta.dirname, "..", "vectors");

const FILES = [
  [
    "names",
    "Names as subject tokens; ids of trainers; job names (code empty: allowed).",
    nameCases,
  ],
  ["subjects", "Subjects, streams and inboxes of the job mnist.", subjectCases],
  ["encoding", "msgpack values as they are written, and other forms that are read.", encodingCases],
  [
    "encodings",
    "float32 elements in the encodings, and elements of these read.",
    () => ({ ...elementEncodingCases(), ...groupCases() }),
  ],
  ["records", "Journal records of trainers and hosts.", recordCases],
  [
    "answers",
    "Answers, outcome requests, pulls, batched reads, and errors as replies.",
    answerCases,
  ],
  ["lifecycle", "Requests of the lifecycle and their replies.", lifecycleCases],
  [
    "calls",
    "Calls that change parameters, in a session in which no outcome is known yet, and their records by shard.",
    callCases,
  ],
  ["layout", "FNV-1a hashes of names and layouts of parameters.", layoutCases],
  ["acks", "The broker's answers to records, and what a client makes of them.", journalAckCases],
  [
    "reactions",
    "What a client does about each error in the answer to each kind of message.",
    reactionCases,
  ],
  ["reads", "Requests of a client that reads parameters and parts of them.", readCases],
  ["refused", "Bytes that every reader refuses, with the code.", refusedCases],
] as const;

interface MessageCase {
  readonly what: string;
  readonly hex: string;
  readonly fields: Record<string, unknown>;
  readonly data?: string;
  readonly crc: number;
}

interface GroupsRead {
  readonly encoding: Encoding;
  readonly elements: number;
  readonly hex: string;
  readonly float32?: string;
  readonly code?: string;
}

function sections(name: string): Record<string, readonly unknown[]> {
  const { about: _about, ...rest } = JSON.parse(
    readFileSync(join(DIRECTORY, `${name}.json`), "utf8"),
  );
  return rest;
}

/** All cases of a section. */
function cases<Case>(name: string, section: string): readonly Case[] {
  return (sections(name)[section] ?? []) as readonly Case[];
}

describe("the implementation gives", () => {
  test.each(FILES)("%s.json", async (name, about, build) => {
    await expect(toFile(about, await build())).toMatchFileSnapshot(join(DIRECTORY, `${name}.json`));
  });
});

const messages = ["records", "answers", "lifecycle"].flatMap((name) =>
  Object.keys(sections(name)).flatMap((section) =>
    cases<MessageCase>(name, section).map((entry) => [`${name}, ${entry.what}`, entry] as const),
  ),
);

test("there are messages of every kind", () => {
  expect(messages.length).toBeGreaterThan(35);
});

test.each(messages)("%s is encoded and read", (_what, { fields, data, crc, hex }) => {
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  const entries = fromJson(fields) as Record<string, unknown>;
  const tensor = data === undefined ? undefined : Uint8Array.from(Buffer.from(data, "hex"));
  expect(toHex(encodeMessage(entries, tensor))).toBe(hex);
  const message = decodeMessage(bytes);
  expect(message.fields).toEqual(entries);
  expect(toHex(message.data)).toBe(data ?? "");
  expect(readCrc(bytes)).toBe(crc);
});

test.each(["bfloat16", "float16"] as const)("elements are encoded as %s and read", (encoding) => {
  const bytes = (hex: string | undefined) => Uint8Array.from(Buffer.from(hex ?? "", "hex"));
  for (const entry of cases<Record<string, string>>("encodings", "encoded")) {
    const encoded = new Uint8Array(2);
    encodeElements(encoding, new Float32Array(bytes(entry["float32"]).buffer), encoded);
    expect(toHex(encoded), entry["float32"]).toBe(entry[encoding]);
  }
  for (const entry of cases<Record<string, string>>("encodings", "decoded")) {
    const element = new Float32Array(1);
    decodeElements(encoding, bytes(entry["hex"]), element);
    expect(toHex(bytesOf(element)), entry["hex"]).toBe(entry[encoding]);
  }
});

test("groups of elements are encoded and read", () => {
  const bytes = (hex: string | undefined) => Uint8Array.from(Buffer.from(hex ?? "", "hex"));
  for (const { what, ...entry } of cases<Record<string, string>>("encodings", "groups")) {
    const floats = new Float32Array(bytes(entry["float32"]).buffer);
    for (const encoding of ["int8", "e3m0"] as const) {
      const encoded = new Uint8Array(encodedBytes("float32", encoding, floats.length));
      encodeElements(encoding, floats, encoded);
      expect(toHex(encoded), `${what} in ${encoding}`).toBe(entry[encoding]);
    }
  }
  for (const entry of cases<GroupsRead>("encodings", "groupsRead")) {
    const floats = new Float32Array(entry.elements);
    const code = codeOf(() => decodeElements(entry.encoding, bytes(entry.hex), floats));
    expect(code, entry.hex).toBe(entry.code ?? "");
    if (code === "") expect(toHex(bytesOf(floats)), entry.hex).toBe(entry.float32);
  }
});

test("what is refused is refused with its code", () => {
  const refused = cases<{ what: string; hex: string; code: string }>("refused", "messages");
  for (const { what, hex, code } of refused) {
    expect(isErrorCode(code), what).toBe(true);
    expect(
      codeOf(() => decodeMessage(Buffer.from(hex, "hex"))),
      what,
    ).toBe(code);
  }
});
