/** Jobs and programs that end with the test that starts them. */
import { onTestFinished } from "vitest";
import type { HostOptions } from "../../src/actors/host/host.ts";
import { TestJob } from "../support/host.ts";
import { RunningProgram } from "./running-program.ts";

/** Starts a broker with a job, without hosts; `defaults` are options of every host. */
export async function startJob(defaults: Partial<HostOptions> = {}): Promise<TestJob> {
  const job = await TestJob.start(defaults);
  onTestFinished(() => job.remove());
  return job;
}

/** The same with one host, once that serves. */
export async function startServedJob(defaults: Partial<HostOptions> = {}): Promise<TestJob> {
  const job = await startJob(defaults);
  await job.host();
  return job;
}

/** Starts a program; `variables` are added to those of this process. */
export function startProgram(
  path: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): RunningProgram {
  const program = new RunningProgram(path, args, variables);
  onTestFinished(() => program.kill());
  return program;
}
