import { connect } from "nats-pserver";

// Learns y = 3 x + 1 from samples. Start it several times at once: all train the same parameter.
const ps = await connect({ job: "default" });

// One process is selected to give the first values; the others wait for it.
if (await ps.beginInit()) {
  await ps.initParam("line", Float32Array.of(0, 0), { learningRate: 0.2 });
  await ps.finishInit();
}

for (let step = 1; step <= 100; step++) {
  const { data } = await ps.pullFull("line");
  const [slope = 0, offset = 0] = data as Float32Array;

  const x = Math.random() * 2 - 1;
  const error = slope * x + offset - (3 * x + 1);
  await ps.sendGrads({ line: Float32Array.of(error * x, error) });

  if (step % 20 === 0) console.log(`y = ${slope.toFixed(3)} x + ${offset.toFixed(3)}`);
}

await ps.close();
