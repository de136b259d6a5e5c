// Proves how replies in several pieces are sent over a connection that only keeps what is published: the pieces
// in order, with an end that is told once, also where an error or the limit of waiting replies cuts them off.
import { beforeEach, expect, test, vi } from "vitest";
import { type Chunk, Responder } from "../../../src/actors/owner/responder.ts";
import { decodeMessage, encodeMessage, PserverError } from "../../../src/protocol/index.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { HANG_MS } from "../../support/limits.ts";
import { HandedOn } from "./handed-on.ts";

/** Seven such pieces are more than may be on their way at one time. */
const PIECE_BYTES = 900 * 1024;
const ALICE = { from: "alice", reply: "alice.pieces" };

let net: HandedOn;
let responder: Responder;
let ends: number;

beforeEach(() => {
  net = new HandedOn();
  responder = new Responder(net.connection, new BufferPool());
  ends = 0;
});

/** Sends a reply of so many pieces; the one with the number `failing` is an error instead. */
function send(count: number, failing?: number): void {
  let made = 0;
  const make = (): Chunk => {
    if (made === failing) throw new PserverError("STALE_EPOCH", "over");
    made += 1;
    return { bytes: encodeMessage({ made }, new Uint8Array(PIECE_BYTES)), more: made < count };
  };
  responder.respondInChunks(ALICE, make, () => {
    ends += 1;
  });
}

/** What was sent: numbers of pieces, codes of errors. */
function sent(): unknown[] {
  return net.published.map((bytes) => {
    const { made, error } = decodeMessage(bytes).fields;
    return made ?? (error as { code: string } | undefined)?.code ?? "other";
  });
}

test("pieces are sent in order, up to the last one", async () => {
  send(10);
  await vi.waitFor(() => expect(sent()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), HANG_MS);
  expect(ends).toBe(1);
});

test("an error is the last piece", async () => {
  send(10, 2);
  await vi.waitFor(() => expect(sent()).toEqual([1, 2, "STALE_EPOCH"]), HANG_MS);
  expect(ends).toBe(1);
});

test("a reply is cut off by BUSY where too many replies wait", async () => {
  net.taking = false;
  send(10);
  await vi.waitFor(() => expect(sent()).toEqual([1, 2, 3, 4, 5, 6, 7]), HANG_MS);
  const crowd: [string, number][] = [
    ["alice", 4_095],
    ["bob", 4_096],
    ["carol", 4_096],
    ["dave", 1_000],
  ];
  for (const [from, count] of crowd) {
    for (let i = 0; i < count; i++)
      responder.respond({ from, reply: from }, () => encodeMessage({}));
  }
  expect(net.published.length).toBe(7);
  net.take();
  await vi.waitFor(() => expect(net.published.length).toBe(7 + 2 + 13_287), HANG_MS);
  expect(sent().filter((each) => each !== "other")).toEqual([1, 2, 3, 4, 5, 6, 7, 8, "BUSY"]);
  expect(ends).toBe(1);
});
