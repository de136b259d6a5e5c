// Proves that trainers who keep step loosely learn: two of them train the digits' network with Adam. The
// one starts only when the other has gone ahead as far as it may; neither ever reads weights while it is
// more than `staleness` steps ahead.
import { afterEach, expect, test } from "vitest";
import { loadDigits } from "../../../examples/digits/dataset.ts";
import { PARAMETERS } from "../../../examples/digits/network.ts";
import { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";
import { evaluateDigits, initializeDigits, trainDigits } from "./digits-trainer.ts";

const STALENESS = 2;
const STEPS = 60;
const BATCH_SIZES = [20, 80] as const;

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

test("two trainers a few steps apart learn the digits with Adam", async () => {
  job = await TestJob.start({
    shards: 2,
    synchronization: { mode: "ssp", trainers: 2, staleness: STALENESS },
    leaseMs: LASTING_LEASE_MS,
  });
  await job.host();
  const digits = await loadDigits();
  const clients = await Promise.all(BATCH_SIZES.map((size) => job.trainer(`trainer-${size}`)));
  const [first] = clients as [(typeof clients)[number]];
  await initializeDigits(first, { optimizer: "adam", learningRate: 0.005 });

  /** The last step that each has begun to send: no fewer than the shards can know. */
  const sent = [0, 0];
  let lead = 0;
  let follow = () => {};
  const ahead = new Promise<void>((resolve) => {
    follow = resolve;
  });
  await Promise.all(
    clients.map(async (client, i) => {
      if (i > 0) await ahead;
      await trainDigits({
        client,
        digits,
        batchSize: BATCH_SIZES[i] as number,
        steps: STEPS,
        seed: i,
        onRead: (ownSteps) => {
          lead = Math.max(lead, ownSteps - Math.min(...sent));
          if (lead === STALENESS) follow();
        },
        onSend: (step) => {
          sent[i] = step;
        },
      });
    }),
  );
  expect(lead).toBe(STALENESS);
  const { accuracy, loss } = await evaluateDigits(first, digits);
  expect(accuracy).toBeGreaterThan(0.86);
  expect(loss).toBeLessThan(0.5);
  // Each gradient was applied by itself.
  const tensors = await first.getParams(PARAMETERS);
  expect(tensors.map(({ version }) => version)).toEqual(PARAMETERS.map(() => 1 + 2 * STEPS));
});
