import { lossAndGradient } from "./problem.ts";
import { read, trainTogether } from "./team.ts";

// A trainer that lags: trainer-2 reads the weights at every twentieth step only, so most of its gradients are
// computed from values that the others have long replaced.

const LAG_STEPS = 20;

await trainTogether({ learningRate: 0.5 }, async (trainer, step) => {
  const isFresh = trainer.id !== "trainer-2" || step % LAG_STEPS === 1;
  const weights = isFresh ? await read(trainer) : trainer.weights;
  const { loss, gradient } = lossAndGradient(weights, trainer.next());
  await trainer.client.sendGrads({ w: gradient });
  return loss;
});
