import { parseArgs } from "node:util";
import { connect } from "nats-pserver";
import { batches, loadDigits } from "./dataset.ts";
import { differentiate, initialWeights, PARAMETERS } from "./network.ts";
import { toTensors, toWeights } from "./tensors.ts";

// One trainer: pulls the weights, computes gradients on its next batch, sends them, again and
// again, waiting for no other trainer. Reports what it does as JSON lines on standard output.

// Plain SGD, slow enough for gradients of weights that other trainers have changed since.
const BATCH_SIZE = 64;
const LEARNING_RATE = 0.15;

/** Updates between two notes of the loss. */
const NOTE_EVERY = 10;

// Longer than it takes to replace a host: calls wait for that and then continue.
const CALL = { timeoutMs: 60_000 };

const { values: flags } = parseArgs({
  options: {
    url: { type: "string", default: "nats://127.0.0.1:4222" },
    job: { type: "string", default: "default" },
    trainer: { type: "string", default: "trainer-1" },
    seed: { type: "string", default: "1" },
  },
});

let stopping = false;
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    stopping = true;
  });
}
// The parent process has ended, and probably the broker, too.
process.once("disconnect", () => process.exit(1));

const { train } = await loadDigits();
const ps = await connect({ url: flags.url, job: flags.job, trainer: flags.trainer });

// One trainer is selected to initialize the job; `getParams` of the others waits for it.
const selected = await ps.beginInit({ wait: false, ...CALL });
if (selected) {
  const tensors = toTensors(initialWeights(Number(flags.seed)));
  for (const name of PARAMETERS) {
    await ps.initParam(name, tensors[name], { learningRate: LEARNING_RATE }, CALL);
  }
  await ps.finishInit(CALL);
}
say({ event: "joined", selected });

let updates = 0;
for (const batch of batches(train, BATCH_SIZE, Number(flags.seed))) {
  if (stopping) break;
  const startedMs = Date.now();
  const weights = toWeights(await ps.getParams(PARAMETERS, CALL));
  const { loss, gradients } = differentiate(weights, batch);
  say({ event: "sending" });
  await ps.sendGrads(toTensors(gradients), CALL);
  say({ event: "update", loss, startedMs });
  if (++updates % NOTE_EVERY === 0) await ps.note({ loss }, CALL);
}
await ps.close();
process.exit(0);

function say(message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
