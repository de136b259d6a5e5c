import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { TestJob } from "../../support/host.ts";
import { PaddlePrograms, type ProgramOutput, runWith } from "./programs.ts";

/** Programs of the Paddle libraries for one test file, run with a job and a host of their own. */
export class ServedPrograms {
  #programs: PaddlePrograms | undefined;
  #models = "";

  /** Builds the libraries before the tests of the calling file, and cleans up after them. */
  static forThisFile(sanitizers?: string): ServedPrograms {
    const served = new ServedPrograms();
    beforeAll(async () => {
      served.#models = await mkdtemp(join(tmpdir(), "pserver-models-"));
      served.#programs = await PaddlePrograms.build(sanitizers);
    });
    afterAll(async () => {
      await served.#programs?.remove();
      await rm(served.#models, { recursive: true, force: true });
    });
    return served;
  }

  /** Compiles a program; its path. */
  async program(name: string): Promise<string> {
    if (this.#programs === undefined) throw new Error("the libraries are not built yet");
    return await this.#programs.program(name);
  }

  /** Runs a program to its end, with a new job; @throws what it wrote unless it succeeds. */
  async run(name: string, ...args: string[]): Promise<ProgramOutput> {
    return await this.runAfter(async () => {}, name, ...args);
  }

  /** Runs a program as {@link run} does, once `prepare` is done with the job. */
  async runAfter(
    prepare: (job: TestJob) => Promise<void>,
    name: string,
    ...args: string[]
  ): Promise<ProgramOutput> {
    const path = await this.program(name);
    const job = await TestJob.start({ modelDirectory: this.#models });
    try {
      await job.host();
      await prepare(job);
      if (name.startsWith("v3-")) {
        return await runWith(path, [...args, job.broker.url], { PSERVER_JOB: job.job });
      }
      return await runWith(path, args, jobVariables(job));
    } finally {
      await job.remove();
    }
  }

  /** What hosts have saved: file names and directory names, relative to the model directory. */
  async saved(): Promise<string[]> {
    return await readdir(this.#models);
  }
}

/** Where revisions 1 and 2 look for their job. */
export function jobVariables({ broker, job }: TestJob): Record<string, string> {
  return { PSERVER_URL: broker.url, PSERVER_JOB: job };
}
