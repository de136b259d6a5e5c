import { lossAndGradient } from "./problem.ts";
import { read, trainTogether } from "./team.ts";

// A learning rate ten times too high: somebody started trainer-3 with 20 in place of 2. The loss never settles.

await trainTogether({ learningRate: 2 }, async (trainer) => {
  const { loss, gradient } = lossAndGradient(await read(trainer), trainer.next());
  const options = trainer.id === "trainer-3" ? { learningRate: 20 } : {};
  await trainer.client.sendGrads({ w: gradient }, options);
  return loss;
});
