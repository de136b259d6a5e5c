import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect as connectToBroker, type NatsConnection } from "@nats-io/transport-node";
import { connect } from "../src/client/index.ts";
import { SlowLink } from "../test/support/slow-link.ts";
import { Bed } from "./bed.ts";
import { buildCPrograms, cProgramPath, missingForC } from "./c-programs.ts";
import { LineProcess } from "./line-process.ts";
import { type BenchOptions, isWanted } from "./options.ts";

const NAME = "slow link steps";
/** Rates of the link. */
const MEGABITS = [1, 3.2] as const;
/** Time for which the link has work in each direction of a step. */
const WORK_SECONDS = 5;
const STEPS = 3;
/** Bytes of one message of the raw broker. */
const MESSAGE_BYTES = 256 * 1024;
const JOB = "slow-steps";

/** The bytes that a step may move for each of its payload, and the time it may take for each of the link's own. */
const BYTES_TARGET = 1.05;
const TIME_TARGET = 1.1;

/** Steps of one trainer through a slow link: all gradients are pushed, and then all values pulled. */
export interface SlowSteps {
  readonly name: string;
  /** Bytes that the link has carried to and from the broker, for each byte of gradients and of values. */
  readonly sentRatio: number;
  readonly receivedRatio: number;
  /** Time of the steps over the time that the link needs for gradients and values. */
  readonly timeRatio: number;
  /** Whether this is measured against the targets; the raw broker is not. */
  readonly isOurs: boolean;
}

/** Makes one step: moves so many bytes to the broker, and as many back. */
type Step = () => Promise<void>;

/** Measures steps of the clients in TypeScript and C over links of 1 and 3.2 Mbit/s, beside those of the raw broker. */
export async function benchSlowSteps(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<SlowSteps[]> {
  if (!isWanted(options, NAME)) return [];
  const missing = await missingForC();
  if (missing === undefined) await buildCPrograms();
  else options.log(`${NAME}, C: left out, because this machine lacks ${missing}`);
  const found: SlowSteps[] = [];
  const rates = options.quick ? MEGABITS.slice(-1) : MEGABITS;
  for (const megabits of rates) {
    const bytesPerSecond = megabits * 125_000;
    const bed = await Bed.open(options.profileDirectory);
    const link = await SlowLink.open(bed.broker.port, bytesPerSecond);
    try {
      await bed.startHost(JOB, "file");
      const elements = Math.round((bytesPerSecond * WORK_SECONDS) / 4);
      const open = [openRaw, openTypeScript, ...(missing === undefined ? [openC] : [])];
      for (const openOne of open) {
        const { who, step, close } = await openOne(bed, link.url, elements);
        const name = `${NAME}, ${megabits} Mbit/s, ${who}`;
        const isOurs = openOne !== openRaw;
        const steps = {
          ...(await measure(link, step, 4 * elements, bytesPerSecond)),
          name,
          isOurs,
        };
        options.log(`${name}: ${steps.timeRatio.toFixed(3)} of the link's own time`);
        found.push(steps);
        await close();
      }
    } finally {
      link.close();
      await bed.close();
    }
  }
  return found;
}

async function measure(link: SlowLink, step: Step, bytes: number, bytesPerSecond: number) {
  // The first step tells a client how fast the link is.
  await step();
  const { sentBytes, receivedBytes } = link;
  const startMs = performance.now();
  for (let i = 0; i < STEPS; i++) await step();
  const seconds = (performance.now() - startMs) / 1e3;
  const payload = STEPS * bytes;
  return {
    sentRatio: (link.sentBytes - sentBytes) / payload,
    receivedRatio: (link.receivedBytes - receivedBytes) / payload,
    timeRatio: seconds / ((2 * payload) / bytesPerSecond),
  };
}

interface Stepper {
  readonly who: string;
  readonly step: Step;
  readonly close: () => Promise<unknown>;
}

/** Messages to a stream, all at once, and as many of a responder that is not on the link. */
async function openRaw(bed: Bed, url: string, elements: number): Promise<Stepper> {
  const near = await connectToBroker({ servers: bed.broker.url });
  const manager = await jetstreamManager(near);
  await manager.streams.add({ name: "RAW", subjects: ["raw.log"] });
  const sizes = sizesOf(4 * elements);
  near.subscribe("raw.get", {
    callback: (_error, message) => {
      message.respond(new Uint8Array(Number(message.string())));
    },
  });
  await near.flush();
  const far: NatsConnection = await connectToBroker({ servers: url });
  const client = jetstream(far, { timeout: 120_000 });
  const step: Step = async () => {
    await Promise.all(sizes.map((size) => client.publish("raw.log", new Uint8Array(size))));
    await Promise.all(sizes.map((size) => far.request("raw.get", `${size}`, { timeout: 120_000 })));
  };
  return { who: "raw broker", step, close: () => Promise.all([far.close(), near.close()]) };
}

function sizesOf(bytes: number): number[] {
  const whole = Math.floor(bytes / MESSAGE_BYTES);
  const rest = bytes % MESSAGE_BYTES;
  return [...Array<number>(whole).fill(MESSAGE_BYTES), ...(rest > 0 ? [rest] : [])];
}

async function openTypeScript(_bed: Bed, url: string, elements: number): Promise<Stepper> {
  const client = await connect({ url, job: JOB, trainer: "typescript" });
  await client.createIfNotAlreadyCreated("typescript", new Float32Array(elements), {
    learningRate: 1,
  });
  const grads = { typescript: new Float32Array(elements).fill(1) };
  const into = { typescript: new Float32Array(elements) };
  const step: Step = async () => {
    await client.sendGrads(grads);
    await client.getParams(["typescript"], { into });
  };
  return { who: "TypeScript", step, close: () => client.close() };
}

async function openC(bed: Bed, url: string, elements: number): Promise<Stepper> {
  const trainer = LineProcess.start(cProgramPath("trainer"));
  bed.adopt(trainer);
  await trainer.call("open", url, JOB, "c");
  await trainer.call("create", "c", 1, `${elements}`);
  const step: Step = async () => void (await trainer.numbers("run", "step", 1));
  return { who: "C", step, close: async () => undefined };
}

/** The rows of the table, the first of them the titles. */
export function slowStepRows(found: readonly SlowSteps[]): string[][] {
  const titles = ["measurement", "sent / payload", "received / payload", "time / link's own"];
  return [
    titles,
    ...found.map(({ name, sentRatio, receivedRatio, timeRatio }) => [
      name,
      ...[sentRatio, receivedRatio, timeRatio].map((ratio) => ratio.toFixed(3)),
    ]),
  ];
}

/** A target for each figure of the clients, and the result. */
export function slowStepTargets(
  found: readonly SlowSteps[],
): { name: string; aim: string; found: string; met: boolean }[] {
  const ours = found.filter(({ isOurs }) => isOurs);
  return ours.flatMap(({ name, sentRatio, receivedRatio, timeRatio }) => [
    targetOf(`${name}, bytes`, Math.max(sentRatio, receivedRatio), BYTES_TARGET, "the payload"),
    targetOf(`${name}, time`, timeRatio, TIME_TARGET, "the link's own time"),
  ]);
}

function targetOf(name: string, ratio: number, target: number, of: string) {
  return {
    ...{ name, aim: `≤ ${target} of ${of}`, found: ratio.toFixed(3) },
    met: ratio <= target,
  };
}
