// Proves what is written for a line of a trainer: its bytes behind the rank, or on a terminal only what cannot
// command one, in colours that end with the line; and that a reader who is gone holds no trainer up.
import { PassThrough, Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { makePaintRank } from "../../../src/cli/output/colors.ts";
import { TrainerOutput } from "../../../src/cli/run/trainer-output.ts";

async function shown(
  bytes: Buffer,
  options: { isTTY: boolean; json?: boolean; count?: number },
): Promise<Buffer> {
  const stdout = Object.assign(new PassThrough(), { isTTY: options.isTTY });
  const paint = makePaintRank(options.isTTY);
  const output = new TrainerOutput({
    stdout,
    stderr: new PassThrough(),
    paint: { stdout: paint, stderr: paint },
    json: options.json === true,
    count: options.count ?? 1,
  });
  await output.follow(3, options.json === true ? "stderr" : "stdout", Readable.from([bytes]));
  return stdout.read() as Buffer;
}

const HOSTILE = Buffer.from("a\tb \u001b[31mred\u001b]0;title\u0007 \u202eturned");

test("elsewhere than on a terminal bytes are as they were", async () => {
  const raw = Buffer.concat([HOSTILE, Buffer.from([0xff, 0x0a])]);
  expect(await shown(raw, { isTTY: false, count: 12 })).toEqual(
    Buffer.concat([Buffer.from("[ 3] "), raw]),
  );
});

test("on a terminal nothing but colours gets through, and they end with the line", async () => {
  expect(String(await shown(HOSTILE, { isTTY: true }))).toBe(
    "\u001b[32m[3]\u001b[39m a\tb \u001b[31mred\\x1b]0;title\\x07 \\u202eturned\u001b[0m\n",
  );
});

test("as JSON a line tells its stream", async () => {
  const text = String(await shown(HOSTILE, { isTTY: true, json: true }));
  expect(JSON.parse(text)).toEqual({ rank: 3, stderr: HOSTILE.toString() });
  expect(text).not.toContain("\u202e");
});

test("a slow reader is waited for; one that is gone is not, and gets no more", async () => {
  let answer: (error?: Error) => void = () => {};
  const written: string[] = [];
  const stdout = new Writable({
    highWaterMark: 1,
    write: (chunk, _encoding, callback) => {
      written.push(String(chunk));
      answer = callback;
    },
  });
  const paint = makePaintRank(false);
  const both = { stdout: paint, stderr: paint };
  const options = { stdout, stderr: new PassThrough(), paint: both, json: false, count: 1 };
  const output = new TrainerOutput(options);
  const printer = output.printer(0, "stdout");
  const slow = printer.print(Buffer.from("a\n"));
  expect(output.isHeldUp).toBe(true);
  answer();
  await slow;
  expect(output.isHeldUp).toBe(false);
  const lost = printer.print(Buffer.from("b\nc\n"));
  answer(Object.assign(new Error("broken pipe"), { code: "EPIPE" }));
  await lost;
  expect(output.isHeldUp).toBe(false);
  await printer.print(Buffer.from("d\n"));
  await printer.end();
  expect(written).toEqual(["[0] a\n", "[0] b\n"]);
});
