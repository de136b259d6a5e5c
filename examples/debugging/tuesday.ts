import { lossAndGradient } from "./problem.ts";
import { read, trainTogether } from "./team.ts";

// A model that was fine until Tuesday: once, at step 30, trainer-1 sends a gradient of the wrong sign that it
// forgot to divide by the size of a large batch. No value is unusual for a gradient of a sum; the model is
// useless for a long time.

await trainTogether({ learningRate: 0.2 }, async (trainer, step) => {
  const { loss, gradient } = lossAndGradient(await read(trainer), trainer.next());
  const isTuesday = trainer.id === "trainer-1" && step === 30;
  const sent = isTuesday ? gradient.map((_, i) => (i % 2 === 0 ? -40 : 40)) : gradient;
  await trainer.client.sendGrads({ w: sent });
  return loss;
});
