import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Client, connect } from "nats-pserver";
import { type Batch, type Samples, wholeBatch } from "./dataset.ts";
import { programFile } from "./demo-processes.ts";
import { type Evaluation, evaluate, PARAMETERS } from "./network.ts";
import { toWeights } from "./tensors.ts";

/** Scores of the server's weights. */
export interface Observation {
  /** The score on the test digits. */
  readonly evaluation: Evaluation;
  /** Updates applied to each parameter since it was initialized. */
  readonly applied: readonly number[];
}

/** A model file, scored by a process of its own. */
export interface SavedScore {
  readonly file: string;
  readonly bytes: number;
  readonly evaluation: Evaluation;
}

const CALL = { timeoutMs: 60_000 };

/** A client that does not train: it reads the weights and asks for saves. */
export class Observer {
  readonly #ps: Client;
  readonly #test: Batch;

  private constructor(ps: Client, test: Batch) {
    this.#ps = ps;
    this.#test = test;
  }

  /** Joins the job; `test` is what it scores weights on. */
  static async join(url: string, job: string, test: Samples): Promise<Observer> {
    return new Observer(await connect({ url, job, trainer: "observer" }), wholeBatch(test));
  }

  /** Number of test digits. */
  get digits(): number {
    return this.#test.labels.length;
  }

  /** Scores the weights as they are now; waits until the job is initialized. */
  async observe(): Promise<Observation> {
    const tensors = await this.#ps.getParams(PARAMETERS, CALL);
    return {
      evaluation: evaluate(toWeights(tensors), this.#test),
      // The first version is the initialization.
      applied: tensors.map(({ version }) => version - 1),
    };
  }

  /** Lists the parameters that lie in these shards; each is small enough for a single block. */
  async parametersIn(shards: readonly number[]): Promise<string[]> {
    const parameters = await this.#ps.listParams(CALL);
    return parameters
      .filter(({ layout }) => shards.includes(layout.firstShard))
      .map(({ name }) => name);
  }

  /** Saves the model below the hosts' model directory, and has a fresh process score the file. */
  async saveAndScore(path: string): Promise<SavedScore> {
    const { file, bytes } = await this.#ps.saveModel(path, CALL);
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, programFile("score"), file],
      { timeout: CALL.timeoutMs },
    );
    return { file, bytes, evaluation: JSON.parse(stdout) };
  }

  /** Leaves the job. */
  async close(): Promise<void> {
    await this.#ps.close();
  }
}
