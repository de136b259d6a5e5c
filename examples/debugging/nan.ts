import { lossAndGradient, type Sample } from "./problem.ts";
import { read, trainTogether } from "./team.ts";

// A trainer that sends NaN: at step 40 trainer-2 gets samples of a sensor that was off, and divides them by
// their deviation, which is 0. The parameter allows values that are not finite, so the server applies them.

/** Scales the features to deviation 1. */
function normalized(samples: readonly Sample[]): Sample[] {
  const values = samples.flatMap(({ x }) => [...x]);
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / values.length);
  return samples.map(({ x, label }) => ({ x: x.map((value) => value / deviation), label }));
}

await trainTogether({ learningRate: 0.3, allowNonFinite: true }, async (trainer, step) => {
  const isOff = trainer.id === "trainer-2" && step === 40;
  const samples = trainer.next().map(({ x, label }) => ({ x: isOff ? x.fill(0) : x, label }));
  const { loss, gradient } = lossAndGradient(await read(trainer), normalized(samples));
  await trainer.client.sendGrads({ w: gradient });
  return loss;
});
