import { spawn } from "node:child_process";
import { once } from "node:events";
import { openHistory } from "../../../src/history/open-journal.ts";
import type { Cut, Point } from "../../../src/history/points.ts";
import { resolvePoint } from "../../../src/history/resolve-point.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";

/** The compiled program; `make programs` makes it. */
const PROGRAM = testProgram("fork-process");

/** A fork or a rewind of a test job. */
export interface Branching {
  /** Absent to complete a rewind. */
  readonly at?: Cut;
  /** The job to make; absent for a rewind. */
  readonly as?: string;
  /** The stage after which the process is killed. */
  readonly killAt?: string;
}

/** Where the shards of a job stand. */
export function cutNow(job: TestJob): Promise<Cut> {
  return cutAt(job, { kind: "now" });
}

/** Where the shards of a job stood at a point. */
export async function cutAt({ broker, job }: TestJob, point: Point): Promise<Cut> {
  const connection = { servers: [broker.url], timeoutMs: HANG_MS };
  const source = await openHistory({ kind: "broker", connection, job });
  try {
    const { signal } = new AbortController();
    return (await resolvePoint(source, point, signal)).cut;
  } finally {
    await source.close();
  }
}

/** Runs a fork or a rewind in a process of its own; what it returns, undefined if it was killed. */
export async function branch(
  { broker, job }: TestJob,
  options: Branching,
): Promise<Record<string, unknown> | undefined> {
  const argument = JSON.stringify({ url: broker.url, job, ...options });
  const child = spawn(process.execPath, [PROGRAM, argument], { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (signal === "SIGKILL" && options.killAt !== undefined) return undefined;
  if (code !== 0) throw new Error(`it ended with ${code ?? signal}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}
