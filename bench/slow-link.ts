import { createConnection, createServer, type Socket } from "node:net";
import { connect } from "../src/client/index.ts";
import { SlowLink } from "../test/support/slow-link.ts";
import { Bed } from "./bed.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { type Measurement, measureRounds, type Throughput } from "./rounds.ts";

const NAME = "slow link";
/** Rates of the link. */
const MEGABITS = [1, 3.2, 10] as const;
/** Time for which the link has work in one measurement. */
const WORK_SECONDS = 10;
/** A transfer is to take at most 1.1 of the time that the link alone takes. */
const TARGET = 1 / 1.1;

/** Measures a push and a pull over links of 1 to 10 Mbit/s, beside the same bytes over the link alone. */
export async function benchSlowLink(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<Throughput[]> {
  if (!isWanted(options, NAME)) return [];
  const found: Throughput[] = [];
  const rates = options.quick ? MEGABITS.slice(-1) : MEGABITS;
  for (const megabits of rates) found.push(...(await measureLink(megabits, options)));
  return found;
}

async function measureLink(
  megabits: number,
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<Throughput[]> {
  const bytesPerSecond = megabits * 125_000;
  const elements = Math.round((bytesPerSecond * WORK_SECONDS) / 4);
  const bytes = 4 * elements;
  const bed = await Bed.open(options.profileDirectory);
  const link = await SlowLink.open(bed.broker.port, bytesPerSecond);
  const sink = await openSink();
  const plain = await SlowLink.open(sink.port, bytesPerSecond);
  try {
    await bed.startHost("slow", "file");
    const client = await connect({ url: link.url, job: "slow", trainer: "far" });
    await client.beginInit();
    await client.initParam("w", new Float32Array(elements), { learningRate: 1 });
    await client.finishInit();
    const gradient = new Float32Array(elements).fill(1);
    const into = { w: new Float32Array(elements) };
    const name = (what: string): string => `${NAME}, ${megabits} Mbit/s, ${what}`;
    const measurement = (what: string, work: () => Promise<unknown>): Measurement => ({
      name: name(what),
      processes: [],
      run: async () => {
        const startedMs = performance.now();
        await work();
        return { bytes, seconds: (performance.now() - startedMs) / 1_000 };
      },
    });
    const compared = { baseline: name("alone"), target: TARGET };
    const measured = await measureRounds(
      [
        measurement("alone", () => sendThrough(plain, bytes)),
        { ...measurement("push", () => client.sendGrads({ w: gradient })), ...compared },
        { ...measurement("pull", () => client.getParams(["w"], { into })), ...compared },
      ],
      { ...options, rounds: 1 },
    );
    await client.close();
    return measured;
  } finally {
    sink.close();
    plain.close();
    link.close();
    await bed.close();
  }
}

/** Opens a server that reads everything and answers one byte at the end. */
function openSink(): Promise<{ port: number; close: () => void }> {
  const server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    socket.resume();
    socket.once("end", () => socket.end("."));
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("no port");
      resolve({ port: address.port, close: () => void server.close() });
    });
  });
}

/** Sends bytes over a link, and waits until all of them have come. */
function sendThrough(link: SlowLink, bytes: number): Promise<void> {
  const { port } = new URL(link.url);
  const socket = createConnection({ host: "127.0.0.1", port: Number(port), allowHalfOpen: true });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", () => {
      socket.destroy();
      resolve();
    });
    socket.end(Buffer.alloc(bytes));
  });
}
