// Proves on a real broker what a changed bit in the files of the tape does whose records were trimmed: the broker
// counts the message and never gives it. `log` prints the lines on either side, says which are missing and ends with
// 1, `verify` names them, and neither waits for what does not come. So it is with an archive of that tape.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { decodeTape } from "../../../src/actors/journal/tape/tape-decoder.ts";
import { snapshotAll } from "../host/control.ts";
import { flipBitOf, streamDirectory } from "../host/damage.ts";
import { archivedJobOfEachTest } from "./archived-job.ts";

const each = archivedJobOfEachTest();

test("damage of the tape is told at its place, and the rest is read", async () => {
  const archived = await each.start({ shards: 1 });
  const { job, directory } = archived;
  // Snapshots wait for the tape: each is followed by a new message.
  for (let i = 0; i < 4; i++) {
    await archived.train(15);
    await snapshotAll(job);
  }
  const seqsOf = ({ stdout }: { stdout: string }): number[] =>
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).seq as number);
  const whole = await archived.pserver("log", "--json");
  expect([whole.code, whole.stderr]).toEqual([0, ""]);
  const sound = await archived.pserver("verify", "--json");
  const [{ tape }] = JSON.parse(sound.stdout).shards;
  expect([sound.code, tape.problems]).toEqual([0, []]);
  expect(tape.messages).toBeGreaterThan(3);
  await archived.archiveOnce();

  const connection = await connect({ servers: job.broker.url });
  const { streams } = await jetstreamManager(connection);
  const { first_seq: first, last_seq: last } = (await streams.info("PS_j_TAPE")).state;
  const seq = first + 1;
  expect(seq).toBeLessThan(last);
  const payload = Uint8Array.from((await streams.getMessage("PS_j_TAPE", { seq }))?.data ?? []);
  await connection.close();
  const { from, to } = decodeTape(payload, 0);
  await job.hosts[0]?.kill();
  await job.broker.stop();
  await flipBitOf(streamDirectory(job, "PS_j_TAPE"), payload);
  await job.broker.start();

  const left = seqsOf(whole).filter((each) => each < from || each > to);
  const records = to - from + 1;
  const lack = records === 1 ? "1 record has" : `${records} records have`;
  const told = `TAPE_DAMAGED: shard 0: ${lack} no line, 0:${from} to ${to}:`;
  const log = await archived.pserver("log", "--json");
  expect(log.code).toBe(1);
  expect(JSON.parse(log.stderr).warning).toContain(told);
  expect(seqsOf(log)).toEqual(left);
  const verify = await archived.pserver("verify");
  expect([verify.code, verify.stderr]).toEqual([1, expect.stringContaining(told)]);

  // The archive was made before; its copy is sound, and has a flipped bit of its own then.
  const alone = ["--archive", directory, "--no-broker", "--json"];
  expect(seqsOf(await archived.pserver("log", ...alone))).toEqual(seqsOf(whole));
  const [name = ""] = await readdir(join(directory, "shard-0", "tape"));
  const path = join(directory, "shard-0", "tape", name);
  const bytes = await readFile(path);
  const at = bytes.indexOf(payload) + payload.length - 1;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path, bytes);
  const hurt = await archived.pserver("log", ...alone);
  expect(hurt.code).toBe(1);
  const warnings = hurt.stderr.trim().split("\n");
  expect(warnings.map((line) => JSON.parse(line).warning)).toEqual([
    expect.stringMatching(`^BAD_ARCHIVE: ${path}, byte \\d+`),
    expect.stringMatching(`^TAPE_DAMAGED: shard 0: .* ha(s|ve) no line, 0:${from} to `),
  ]);
  const before = seqsOf(whole).filter((each) => each < from);
  expect(seqsOf(hurt).slice(0, before.length)).toEqual(before);
  // What is still in the journal is folded from there.
  expect(seqsOf(hurt).at(-1)).toBe(seqsOf(whole).at(-1));
});
