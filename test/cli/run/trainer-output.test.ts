// Proves what is written for a line of a trainer: its bytes behind the rank, or on a terminal only what cannot
// command one, in colours that end with the line.
import { PassThrough, Readable } from "node:stream";
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
