// Proves what the C library promises about records, batches, answers, positions, sessions, cancelled calls,
// losses and errors: each scenario plays broker and hosts in the process of the real library, in place of
// cnats, with a clock that goes on only while the library waits. So it is the same on any machine, and takes
// no time. Under address and undefined behaviour sanitizers.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderReads, renderVectors } from "../../scripts/write-c-vectors.mjs";
import { runProgram } from "./running-program.ts";
import { BuiltLibrary, SANITIZED } from "./toolchain.ts";

/** As in the lists of test/c/scripted. */
const SCENARIOS = {
  records: [
    "a small record is sent again 2 s after the broker has read it, the very same bytes",
    "a record that the broker has not read yet is not sent again",
    "a default timeout is the time without progress, and a given one that of the whole call",
    "a record is never sent again after its PubAck",
    "a record that later ones of its shard have overtaken is sent again",
    "so is one that later ones of other shards have overtaken",
    "a refused record is sent again after 50 ms, doubled up to 1 s",
    "a record that is refused for good ends the call, and what waits is not sent",
    "after a reconnect what has no PubAck is sent at once, what has one is asked for",
    "after a reconnect no record is sent before a host has renewed the lease",
    "in a new session only what was stored nowhere is sent again, numbered anew",
    "a shard gets no number above done + 1,024",
    "at most the bytes of the window are in flight, something larger alone",
    "done is the number up to which all are settled",
    "a record that was given up is never sent again, and done passes it",
    "PubAcks for other records, sessions and places are ignored",
    "a PubAck of another shard's journal is an error",
    "a call ends at its deadline, with what kept it from being done",
    "where stored is enough the PubAck ends the call",
    "a subject that the broker refuses ends the call",
    "a part of a block is one message, unless the broker takes none as large",
    "a row that the broker takes no longer is cut",
    "what is not handed to the connection before its call ends is not sent",
    "what is repeated before it is handed to the connection was not sent twice",
    "what there was no connection for was not sent, and is sent by the next one",
  ],
  publishing: [
    "a part is cut into what the broker takes since the last reconnect",
    "a batch is not larger than what the broker takes since the last reconnect",
    "a record that is too large for the broker of the last reconnect fails its call at once",
    "a denied subject ends all records of a call that go to it",
    "a denied subject ends a call, and leaves those that are over",
  ],
  batches: [
    "the small blocks of a shard are one record, repeated as the very same bytes",
    "a single block has a record of its own",
    "a note has a record of its own",
    "a rejection names the block at fault, and what became of the others",
    "a rejection that names no block is of the record",
    "every block of a batch whose outcome is unknown is counted and listed",
    "every block of a batch that is too late is counted",
    "a batch whose versions were undone is sent again without them",
    "in a new session a batch that was stored nowhere is sent again",
    "a parameter that a call names twice is in two batches",
  ],
  outcomes: [
    "what a guard clips or sets aside is no error, and is counted once",
    "an outcome is asked for 1 s after the PubAck, and then each second",
    "a question is for what is due in a shard, at the highest of their positions",
    "answers to other sessions, numbers and shards are ignored",
    "an answer that comes before the PubAck settles its record",
    "a question that nobody can answer yet is asked again after 200 ms",
    "what a replaced journal lost is told, and what the present one has is asked for",
    "what a stopped shard has stored is given up at once, and nothing else",
    "of a journal that ends too early only what lay behind its end is lost",
    "the end of a journal that names no generation is in the first",
    "the end of a session is told from an outcome",
    "a rejection ends the call",
  ],
  answers: [
    "the position in a reply about outcomes is what reads ask for",
    "a question is asked again after the time that the error names, up to 5 s",
    "a late SUPERSEDED about an earlier session does not end the present one",
    "a rejection without a text is told by its code",
    "rows of a message that are no outcomes leave the others",
  ],
  positions: [
    "positions only grow, by generation and then by sequence",
    "a pull asks for what has a PubAck",
    "the first pull asks for where the job was when it became ready",
    "the first pull of each shard asks for where that was when the job became ready",
    "positions of more shards than a job can have are ignored",
    "a question about a step waits for what was seen, and reads for where it was answered",
    "after JOURNAL_REPLACED a question about a step asks for the start of the new journal",
    "after JOURNAL_REPLACED a pull asks for the start of the new journal",
    "after JOURNAL_REPLACED pulls of other shards ask for what was seen there",
    "JOURNAL_REPLACED by an older journal changes no position",
    "finish tells the positions of the shards that were seen",
    "a gradient does not ask for a step that a read has shown to be closed",
  ],
  sessions: [
    "a trainer whose job was made anew is told so when it renews or joins again, and ends",
    "the lease is renewed every third of its time, and SUPERSEDED ends the client",
    "no renewal that fails for a time ends the session",
    "a renewal that fails for good ends the client",
    "REJOIN has the client join under another token, and renew the new session",
    "a request whose session has ended is made again under the next",
    "a request whose sessions all end is given up",
    "a request whose client cannot join again fails with that error, and the next one tries again",
    "a request without an answer is repeated after 1, 2, 4, 4 s",
    "a request that nobody takes is asked again after 50 ms, doubled up to 500 ms",
    "a request is repeated at once after a reconnect",
    "a request ends at its deadline",
    "closing gives the lease back",
    "closing a client that has failed gives the lease back",
    "requests name the session, except to join and for the status",
  ],
  renewals: [
    "a renewal without an answer ends after the time of the lease, and the next one follows",
    "a renewal under way goes on in the next session, and no second one begins",
    "a client that was superseded renews no longer, and says who has joined",
    "a client that is being closed renews no longer",
  ],
  rejoining: [
    "every session has a token of its own",
    "an error about an earlier session has the request made again under the present one",
    "an error that names no session is about the present one",
    "a request whose call has ended is not made again in the next session",
    "an attempt to join again ends after 30 s, and the next one has another token",
    "nothing is sent between two sessions",
    "a reply to a join without session, lease or 1 to 256 shards is an error",
  ],
  synchronization: [
    "reads wait for the steps that the trainer has ended, in ssp less the staleness",
    "a gradient that is late is counted with backups, and without them sent again by a trainer that enters anew",
    "a trainer whose lease may have run out enters anew before it sends anything of its step",
  ],
  rounds: [
    "a contribution goes to its fragment once the trainer has entered, and tells its round",
    "a contribution that is larger than a message goes in numbered parts",
    "a trainer that is no member any more enters anew and sends all parts again",
    "parts that were taken in two sessions are sent again under another number",
    "a contribution that comes too late counts in no round",
    "a contribution ends at its deadline, also where it waits for its turn",
    "versions are asked for again after TIMEOUT, and in the new journal after JOURNAL_REPLACED",
    "a fragment is read again if a round has closed meanwhile",
    "a fragment is not read before it has the version",
    "a trainer that is drawn for a round is told so, as a member",
    "calls for rounds are refused in other jobs, and with wrong arguments",
    "a trainer that exits the rounds enters them again with its next contribution",
    "details tell whether all blocks of a parameter are on one shard",
  ],
  cancelling: [
    "a cancelled call waits for no PubAck",
    "a cancelled call waits for no outcome",
    "a cancelled call waits for no room",
    "a cancelled call waits for no answer",
    "a cancelled call waits for no step",
    "a cancelled call waits for no turn",
    "a call that is cancelled before it begins sends nothing",
  ],
  fallbacks: [
    "a gradient that a shard finds too early is sent again, once it has entered anew",
    "one that is too early then, too, is refused",
    "a gradient whose version was undone is sent again without it, under another number",
    "a gradient that names no version and is refused is not sent again",
    "a clock that is rejected as of an older epoch fails the call, and the step stays open",
  ],
  "error feedback": [
    "what rounding leaves out of a gradient is added to the next one",
    "it is neither added nor kept where error feedback is off",
    "a record is repeated with the bytes that it had, and its rounding error counts once",
    "a gradient of which nothing is sent leaves it as it was",
    "after a fallback of any shard it is forgotten",
    "after a guard has held a gradient back or clipped it, it is forgotten",
    "when the parameter is initialized again it is forgotten",
    "when the parameter is looked up again it is kept",
    "it is kept of the rows that a gradient has",
    "the norm of a gradient is that of what it decodes to",
    "a group that is not finite leaves it as it was",
  ],
  losses: [
    "what was lost is asked at the last position seen of the first journal left, and told once",
    "what was lost of earlier journals, and nothing, is not told",
    "where the job was when it became ready was not seen, so nothing of it is lost",
    "after a question without an answer the next call asks again",
    "an answer that names no losses has none to tell",
    "after a fallback a gradient names no version that was read before",
    "after a fallback the next gradient enters the steps anew",
    "a read during which a shard falls back shows no step to be closed",
  ],
  reads: [
    "requests are those that the TypeScript client sends",
    "small blocks of a shard are asked for together, at the position that was seen",
    "a lost first chunk is asked for again, and what has come counts once",
    "a lost middle chunk is asked for as soon as the last has come",
    "an answer that ends early is asked for again at once only while it makes progress",
    "a request is not repeated while its chunks come",
    "a request is not repeated while its answer may be on the way",
    "after STALE_EPOCH the parameters of what is missing are looked up",
    "what a shard says to be stale and hosts do not is asked for with growing pauses",
    "what was initialized anew is read anew, and nothing else",
    "a part of what was initialized anew is read anew",
    "what was not initialized anew is read on",
    "after JOURNAL_REPLACED what is missing is asked for in the new journal",
    "a busy owner is asked again",
    "requests to a shard that refuses keep no others waiting, and wait for each other",
    "a batched read without an owner waits for one",
    "a batched read that permissions forbid fails with DENIED",
    "a chunk that does not fit its request fails the call, and nothing of it is given",
    "values in int8 and e3m0 are decoded, unless no host writes such",
    "what has not changed is not asked for, and stays where it is",
    "what was read of another journal or parameter says nothing",
  ],
  names: [
    "many names are looked up with few requests, and once",
    "a list of names is not taken for another one",
    "after STALE_EPOCH names given again are looked up, and their numbers are others",
    "a parameter whose blocks have no numbers is an error",
    "calls allocate no memory for each of their tensors",
  ],
  initializations: [
    "a trainer that is selected to create a parameter and fails gives that up",
    "so does one whose call is cancelled",
    "many parameters are declared and stored with few messages",
    "no request has more parameters than a reply of the broker's largest message",
    "after a failure what was tried before goes by itself",
    "nothing is stored unless all are declared",
    "of several errors the first to come is told",
    "declarations without an answer end at the deadline",
  ],
  errors: ["every code of an error does what the shared vectors say"],
} as const;

let library: BuiltLibrary;
let directory: string;
let program: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-scripted-"));
  const vectors = join(import.meta.dirname, "../vectors");
  await writeFile(join(directory, "vectors.h"), renderVectors(vectors));
  await writeFile(join(directory, "reads.h"), renderReads(vectors));
  library = await BuiltLibrary.build(SANITIZED);
  program = await library.scriptedProgram(directory);
});

afterAll(async () => {
  await library?.remove();
  await rm(directory, { recursive: true, force: true });
});

describe.each(Object.entries(SCENARIOS))("%s:", (_, titles) => {
  test.each(titles)("%s", async (title) => {
    await runProgram(program, [title]);
  });
});

test("every scenario is played", async () => {
  const listed = (await runProgram(program)).trim().split("\n");
  expect(listed).toEqual(Object.values(SCENARIOS).flat());
});
