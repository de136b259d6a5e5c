import { parseArgs } from "node:util";
import { connect } from "nats-pserver";
import { Random } from "../digits/random.ts";
import { learn, ROW_ELEMENTS, rowsOf } from "./factorization.ts";
import { FIELDS, Market } from "./impressions.ts";

// Learns which advertisements are clicked, with an embedding of a million rows on the server, of which each
// step reads and changes those that its impressions use. Start it several times at once with other --seed.

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    steps: { type: "string", default: "600" },
    batch: { type: "string", default: "1024" },
    seed: { type: "string", default: "1" },
  },
});
const [tableRows, steps, batch, seed] = [
  Number(values.rows),
  Number(values.steps),
  Number(values.batch),
  Number(values.seed),
];
const CALL = { timeoutMs: 300_000 };
const COLUMNS = Array.from({ length: ROW_ELEMENTS }, (_, i) => i);
const REPORTS = 12;

const ps = await connect({ job: "clicks" });
if (await ps.beginInit(CALL)) {
  const random = new Random(0);
  const data = new Float32Array(tableRows * ROW_ELEMENTS);
  // Factors begin different from each other and small; weights begin at 0.
  for (let i = 0; i < data.length; i++)
    data[i] = i % ROW_ELEMENTS === 0 ? 0 : 0.05 * random.normal();
  const table = { dtype: "float32", shape: [tableRows, ROW_ELEMENTS], data } as const;
  const config = { optimizer: "adagrad", learningRate: 0.1, sparse: true } as const;
  await ps.initParam("features", table, config, CALL);
  await ps.finishInit(CALL);
}

const market = new Market(seed, tableRows);
const reportSteps = Math.max(1, Math.floor(steps / REPORTS));
let losses = 0;
let moved = 0;
let startMs = performance.now();
for (let step = 1; step <= steps; step++) {
  const impressions = market.next(batch);
  const rows = rowsOf(impressions);
  const { data } = await ps.pullPart("features", [rows, COLUMNS], CALL);
  const { loss, gradients } = learn(impressions, rows, data as Float32Array);
  const values = { dtype: "float32", shape: [rows.length, ROW_ELEMENTS], data: gradients } as const;
  await ps.sendGrads({ features: { rows, values } }, CALL);
  losses += loss;
  moved += 2 * rows.length;
  if (step % reportSteps === 0) {
    const perSecond = moved / ((performance.now() - startMs) / 1e3);
    const mean = losses / reportSteps;
    console.log(
      `step ${step}: loss ${mean.toFixed(4)} over ${reportSteps * batch} impressions of ${FIELDS} features, ` +
        `${Math.round(perSecond)} rows/s`,
    );
    [losses, moved, startMs] = [0, 0, performance.now()];
  }
}
await ps.close();
