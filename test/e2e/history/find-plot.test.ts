// Proves on a real run that `pserver find` names exactly the updates that stand out, of each kind, with trainer,
// number, place and time, within the filters and limits that it is given, from the broker and from a recorded file;
// that `pserver plot` draws what was noted, in the terminal, as SVG and as HTML; and that both refuse bad input with
// a typed error and leave no file behind. Commands run in this process, one of each as a user starts it.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { textWidth } from "../../../src/cli/output/wrap.ts";
import { runCli } from "../../../src/cli/run-cli.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { Archive } from "../host/journal-fold.ts";

const ROUNDS = 14;
/** The round in which `bad` sends too much. */
const SPIKE = 11;

let job: TestJob;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-find-"));
  job = await TestJob.start({ shards: 2 });
  await job.host();
  const [good, bad] = [await job.trainer("good"), await job.trainer("bad")];
  await good.beginInit();
  await good.initParam("w", new Float32Array(8), { learningRate: 0.1 });
  const lenient = { learningRate: 0.1, allowNonFinite: true };
  await good.initParam("free", new Float32Array(8), lenient);
  await good.initParam("late", new Float32Array(8), { learningRate: 0.1, stalenessScaling: true });
  await good.finishInit();
  await bad.getParams(["late"]);
  for (let round = 1; round <= ROUNDS; round++) {
    // Both step on, but only one of them reads.
    await good.getParams(["late"]);
    for (const client of [good, bad]) {
      const size = client === bad && round === SPIKE ? 500 : 1 + 0.1 * (round % 3);
      await client.sendGrads({ w: new Float32Array(8).fill(size) });
      await client.sendGrads({ late: new Float32Array(8).fill(0.1) });
      const mark = client === good && round === 7 ? { mark: "half <way>" } : {};
      await client.note({ loss: (client === good ? 2 : 3) / round, step: 10 * round, ...mark });
    }
  }
  await good.note({ change: 1e-3, rest: 0 });
  await good.note({ change: -1 });
  await bad.sendGrads({ free: new Float32Array(8).fill(1).fill(Number.NaN, 2, 5) });
  // As after an acknowledgement that was lost.
  await sendAgain("good");
  await endSession();
});

afterAll(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

/** A gradient of a trainer comes again: the first one of it in the journals, as it is. */
async function sendAgain(trainer: string): Promise<void> {
  await using archive = await Archive.open(job.broker.url, job.job);
  for (const shard of [0, 1]) {
    const records = await archive.records(shard);
    const sent = records.find(({ subject }) => subject.includes(`.${trainer}.push.w`));
    if (sent !== undefined) await jetstream(archive.connection).publish(sent.subject, sent.payload);
  }
}

/** A record of a trainer comes late: another process of the same name has ended its session. */
async function endSession(): Promise<void> {
  for (let life = 1; life <= 2; life++) {
    const twin = await job.trainer("twin");
    await twin.sendGrads({ w: new Float32Array(8).fill(1) });
  }
  await sendAgain("twin");
}

/** Runs a command here; a terminal of so many columns if they are given. */
async function pserver(
  args: readonly string[],
  columns?: number,
  color = false,
): Promise<Finished> {
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const [stdout, stderr] = [Object.assign(new PassThrough(), terminal), new PassThrough()];
  const told = { stdout: "", stderr: "" };
  stdout.on("data", (text: Buffer) => {
    told.stdout += text.toString();
  });
  stderr.on("data", (text: Buffer) => {
    told.stderr += text.toString();
  });
  const environment = {
    ...{ PSERVER_URL: job.broker.url },
    ...(color ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
  };
  const { signal } = new AbortController();
  const named = args.includes("--job") ? args : [...args, "--job", job.job];
  const code = await runCli(named, {
    stdin: new PassThrough(),
    stdout,
    stderr,
    environment,
    signal,
  });
  return { code, ...told };
}

type Line = Readonly<Record<string, unknown>>;

/** What a command prints with `--json`, line by line. */
async function lines(...args: string[]): Promise<Line[]> {
  const { code, stdout } = await pserver([...args, "--json"]);
  expect(code).toBe(0);
  const texts = stdout.split("\n").filter((line) => line !== "");
  return texts.map((line) => JSON.parse(line) as Line);
}

describe("find", () => {
  const WHERE = {
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    shard: expect.any(Number),
    seq: expect.any(Number),
    session: expect.any(Number),
    number: expect.any(Number),
  };

  test("nan: the update with values that are not finite", async () => {
    const found = await lines("find", "nan");
    const culprit = { finding: "nan", trainer: "bad", parameter: "free", nonFinite: 3 };
    expect(found).toMatchObject([{ ...WHERE, ...culprit, outcome: "applied" }]);
  });

  test("spike: the norm that is unlike the trainer's own", async () => {
    const found = await lines("find", "spike");
    const norm = 500 * Math.sqrt(8);
    expect(found).toMatchObject([{ ...WHERE, finding: "spike", trainer: "bad", parameter: "w" }]);
    expect(Number(found[0]?.["norm"])).toBeCloseTo(norm, 1);
    expect(Number(found[0]?.["usualNorm"])).toBeLessThan(4);
    expect(await lines("find", "spike", "--deviations", "1000000")).toEqual([]);
    expect(await lines("find", "spike", "--trainer", "good")).toEqual([]);
    expect(await lines("find", "spike", "--param", "late")).toEqual([]);
  });

  test("stale: gradients of values that have changed since, from the given distance on", async () => {
    const found = await lines("find", "stale");
    expect(found.length).toBeGreaterThan(5);
    for (const each of found) {
      expect(each).toMatchObject({ ...WHERE, finding: "stale", trainer: "bad", parameter: "late" });
      expect(each["behind"]).toBeGreaterThan(10);
    }
    expect((await lines("find", "stale", "--behind", "20")).length).toBeLessThan(found.length);
    const [first] = found;
    const until = `${first?.["shard"]}:${first?.["seq"]}`;
    // Norms of the tape are of single precision, those of the journal are not: either may be read.
    const { norm, ...rest } = first ?? {};
    const [only, ...others] = await lines("find", "stale", "--until", until);
    expect(only).toMatchObject(rest);
    expect(Number(only?.["norm"])).toBeCloseTo(Number(norm), 5);
    expect(others).toEqual([]);
  });

  test("rejected: what the fold did not apply, and why", async () => {
    const found = await lines("find", "rejected");
    expect(found).toMatchObject([{ ...WHERE, finding: "rejected", trainer: "twin" }]);
    const [{ code = "", message = "" } = {}] = found;
    const { stdout } = await pserver(["find", "rejected"], 80);
    expect(stdout).toContain(`${code}: `);
    expect(String(message)).not.toBe("");
  });

  test("repeat: a record that came again", async () => {
    const found = await lines("find", "repeat");
    expect(found).toMatchObject([{ ...WHERE, finding: "repeat", trainer: "good" }]);
    const updates = await lines("log", "--trainer", "good", "--param", "w");
    const first = updates.find(({ op }) => op === "grad");
    const { shard, number } = first ?? {};
    // The trainer has said that it has heard of the outcome: where it was first is forgotten.
    expect(found[0]).toMatchObject({ parameter: "w", shard, number, repeats: 0 });
    const { stdout } = await pserver(["find", "repeat"], 80);
    expect(stdout).toContain("folded before; it was applied once");
  });

  test("prints as many as it is told, and counts all", async () => {
    const all = (await lines("find", "stale")).length;
    const { stdout, stderr } = await pserver(["find", "stale", "--limit", "2"], 80);
    expect(stdout.match(/versions old/g)).toHaveLength(2);
    expect(stderr).toBe(`found ${all} updates, the first 2 above: ${all} of bad\n`);
    const none = await pserver(["find", "stale", "--trainer", "good"]);
    expect([none.code, none.stdout, none.stderr]).toEqual([0, "", "no update found: stale\n"]);
  });

  test("fits terminals, with and without colours", async () => {
    for (const what of ["nan", "spike", "stale", "rejected", "repeat"]) {
      for (const columns of [80, 200]) {
        const plain = await pserver(["find", what], columns);
        const colored = await pserver(["find", what], columns, true);
        for (const line of plain.stdout.split("\n"))
          expect(textWidth(line)).toBeLessThanOrEqual(columns);
        expect(plain.stdout).not.toContain("\u001b");
        expect(colored.stdout).toContain("\u001b");
      }
    }
  });

  test("reads a recorded file as it reads the broker; the command is a process of its own", async () => {
    const file = join(directory, "run.pserver");
    expect((await pserver(["record", file])).code).toBe(0);
    const environment = { PSERVER_URL: "nats://127.0.0.1:1" };
    const { code, stdout } = await run(["find", "spike", "--from-file", file, "--json"], {
      environment,
    });
    const [ofBroker] = await lines("find", "spike");
    // The broker's tape has norms in single precision, a fold of the file in double.
    const close = (value: unknown): unknown => expect.closeTo(Number(value), 2);
    const { norm, usualNorm, deviations } = ofBroker ?? {};
    const expected = { ...ofBroker, norm: close(norm), usualNorm: close(usualNorm) };
    expect([code, JSON.parse(stdout)]).toEqual([0, { ...expected, deviations: close(deviations) }]);
  });
});

describe("plot", () => {
  test("draws a line for each trainer in the terminal, and named notes", async () => {
    for (const columns of [80, 200]) {
      const { code, stdout } = await pserver(["plot", "loss", "--by", "step"], columns);
      expect(code).toBe(0);
      const drawn = stdout.split("\n");
      for (const line of drawn) expect(textWidth(line)).toBeLessThanOrEqual(columns);
      expect(drawn[0]).toBe("loss by step");
      expect(stdout).toContain("half <way>");
      expect(stdout).toMatch(/a bad 0\.2143 {3}b good 0\.1429\n$/);
    }
    const colored = await pserver(["plot", "loss"], 80, true);
    expect(colored.stdout).toContain("\u001b");
    expect(colored.stdout).toMatch(/[\u2801-\u28ff]/);
  });

  test("has the numbers of the notes as they were sent", async () => {
    const [chart] = await lines("plot", "loss", "--by", "step", "--trainer", "good");
    const points = Array.from({ length: ROUNDS }, (_, i) => {
      return { x: 10 * (i + 1), mean: 2 / (i + 1), count: 1 };
    });
    expect(chart).toMatchObject({ series: [{ name: "good", points }], marks: [{ x: 70 }] });
    const [norms] = await lines("plot", "norm", "--param", "late", "--trainer", "bad");
    expect(norms?.["series"]).toMatchObject([{ name: "bad late" }]);
  });

  test("takes a logarithmic scale, and says what it leaves out", async () => {
    const norms = await pserver(["plot", "norm", "--log", "--param", "w"], 80);
    // That of the zeros that the parameter began with.
    expect(norms).toMatchObject({ code: 0, stderr: "left out 1 value of 0 or less\n" });
    expect(norms.stdout).toMatch(/^norm by time \(UTC\), logarithmic\n/);
    const change = await pserver(["plot", "change", "--log"], 80);
    expect(change).toMatchObject({ code: 0, stderr: "left out 1 value of 0 or less\n" });
    const rest = await pserver(["plot", "rest", "--log"]);
    expect(rest.stderr).toContain("found no notes with a number rest but 1 value of 0 or less");
    expect(rest).toMatchObject({ code: 3, stdout: "" });
  });

  test("writes a picture, and a page of the same; both name the job of a recorded file", async () => {
    const file = join(directory, "for-plot.pserver");
    expect((await pserver(["record", file])).code).toBe(0);
    const [svg, html] = [join(directory, "loss.svg"), join(directory, "loss.html")];
    expect(await pserver(["plot", "loss", "--out", svg])).toMatchObject({ code: 0, stdout: "" });
    const page = ["plot", "loss", "--out", html, "--from-file", file, "--job", "other"];
    expect(await pserver(page)).toMatchObject({ code: 0, stdout: "" });
    const picture = await readFile(svg, "utf8");
    expect(picture).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" .*<\/svg>\n$/s);
    expect(picture.match(/<polyline/g)).toHaveLength(2);
    expect(picture).toContain("half &lt;way&gt;");
    const text = await readFile(html, "utf8");
    expect(text).toContain("<title>loss of job j</title>");
    expect(text).toContain(`Read from ${file} at `);
    expect(text).toMatch(
      /<td><span[^>]*><\/span>good<\/td><td>14<\/td><td>0\.1429<\/td><td>2<\/td>/,
    );
  });
});

describe("plot of several jobs", () => {
  test("has a line for each, by the time since it began", async () => {
    await job.host({ job: "later" });
    const trainer = await job.trainer("only", { job: "later" });
    await trainer.beginInit();
    await trainer.initParam("w", new Float32Array(1));
    await trainer.finishInit();
    for (const loss of [5, 4]) await trainer.note({ loss });
    const [chart] = await lines("plot", "loss", "--by", "elapsed", "--against", "later");
    const series = chart?.["series"] as { name: string; points: { x: number; mean: number }[] }[];
    expect(series.map(({ name }) => name)).toEqual(["j", "later"]);
    expect(series.map(({ points }) => points[0]?.x)).toEqual([0, 0]);
    expect(series[0]?.points).toHaveLength(2 * ROUNDS);
    expect(series[1]?.points.map(({ mean }) => mean)).toEqual([5, 4]);
  });
});

describe("bad input", () => {
  test.each([
    ["find without what", ["find"], "", 128],
    ["find something else", ["find", "gold"], "", 128],
    ["a limit of 0", ["find", "nan", "--limit", "0"], "", 128],
    ["deviations that are no number", ["find", "spike", "--deviations", "many"], "", 128],
    ["find since no point", ["find", "nan", "--since", "once"], "BAD_VALUE", 3],
    ["find until after the end", ["find", "nan", "--until", "0:9999"], "BAD_VALUE", 3],
    ["find in a job that is not there", ["find", "nan", "--job", "other"], "BAD_NAME", 3],
    ["find in a file that is not there", ["find", "nan", "--from-file", "/absent"], "IO", 6],
    [
      "find in a file that is none",
      ["find", "nan", "--from-file", import.meta.filename],
      "BAD_ARCHIVE",
      3,
    ],
    ["plot of what nobody noted", ["plot", "gain"], "EMPTY", 3],
    ["plot by step of norms without", ["plot", "norm", "--by", "step"], "EMPTY", 3],
    ["plot against no name", ["plot", "--against", "a,"], "", 128],
    ["plot against a job that is not there", ["plot", "--against", "other"], "BAD_NAME", 3],
    ["plot of one point a line", ["plot", "--points", "1"], "", 128],
    ["plot of a file against jobs", ["plot", "--against", "a", "--from-file", "f"], "BAD_VALUE", 3],
    ["plot by something else", ["plot", "loss", "--by", "mood"], "", 128],
    ["plot into no picture", ["plot", "loss", "--out", "loss.png"], "BAD_VALUE", 3],
    ["plot into no directory", ["plot", "loss", "--out", "/absent/loss.svg"], "IO", 6],
    ["plot of an archive that is not there", ["plot", "--archive", "/absent"], "IO", 6],
    [
      "plot of an archive that is none",
      ["plot", "--archive", import.meta.dirname],
      "BAD_ARCHIVE",
      3,
    ],
  ])("%s is refused", async (_name, args, expected, code) => {
    const finished = await pserver(args);
    expect([finished.code, finished.stdout]).toEqual([code, ""]);
    const usage = 'hint: "pserver help COMMAND" lists what it takes';
    expect(finished.stderr).toContain(expected === "" ? usage : `pserver: ${expected}: `);
  });

  test("leaves no file behind", async () => {
    const before = await readdir(directory);
    await pserver(["plot", "gain", "--out", join(directory, "gain.html")]);
    expect(await readdir(directory)).toEqual(before);
  });
});
