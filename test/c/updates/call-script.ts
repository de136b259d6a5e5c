/** Calls as lines for the program that makes them with the C library. */
import { encodeMessage, packValue } from "../../../src/protocol/codec.ts";
import { bytesOf } from "../../../src/protocol/index.ts";
import {
  type CallJob,
  type GivenValues,
  parameterOf,
  SESSION,
  type SentCall,
  TRAINER,
} from "../../client/push/sent-calls.ts";
import { toHex } from "../../protocol/vector-json.ts";

/** The lines of a job and its calls; see test/c/updates/main.c. */
export function toScript(job: CallJob, calls: readonly SentCall[]): string {
  const { parameters, seen, payloadBytes } = job;
  const lines = [
    ["job", payloadBytes],
    ["reply", "join", message(joinReply(job))],
    ["connect"],
    ...parameters.map((info) => ["parameter", toHex(packValue(info))]),
    ...seen.map(({ name, block, version }) => ["seen", text(name), block, version]),
    ...calls.flatMap((call) => callLines(job, call)),
  ];
  return `${lines.map((words) => words.join(" ")).join("\n")}\n`;
}

type Words = readonly (string | number)[];

function callLines(job: CallJob, call: SentCall): readonly Words[] {
  switch (call.kind) {
    case "sendGrads": {
      const { learningRate = "-", encoding = "-", errorFeedback = true, values } = call;
      const head = ["grads", learningRate, encoding, errorFeedback ? "kept" : "-", values.length];
      return [head, ...values.map((given) => [...words(job, given), given.rows?.join(",") ?? "-"])];
    }
    case "setParams":
      return [["set", call.values.length], ...call.values.map((given) => words(job, given))];
    case "pushFull":
      return [["push", call.alpha, call.beta, call.encoding ?? "-"], words(job, call)];
    case "pushAsPart": {
      const lists = call.indices.map((list) => list.join(","));
      const head = ["part", call.alpha, call.beta, call.encoding ?? "-", lists.length, ...lists];
      return [head, words(job, call)];
    }
    case "contribute": {
      const { base, steps, tokens, stepMs = "-", form = "displacement", encoding = "-" } = call;
      const { fragment, values, exact = [] } = call;
      const work = [text(fragment), base, steps, tokens, stepMs, form, encoding];
      const flags = values.map(({ name }) => (exact.includes(name) ? "1" : "0")).join("");
      const head = ["contribute", ...work, flags, values.length];
      return [head, ...values.map((given) => words(job, given))];
    }
    default: {
      const info = parameterOf(job, call.name);
      const { epoch, shape } = info;
      const begun = { selected: true, state: "initializing", epoch, by: TRAINER };
      return [
        ["reply", "create", message({ ...begun, parameters: [info] })],
        ["create", shape.length, ...shape],
        words(job, call),
      ];
    }
  }
}

function joinReply({ synchronization, payloadBytes, parameters }: CallJob): object {
  const shards = parameters[0]?.layout.shards ?? 1;
  const terms = { session: SESSION, shards, made: "now", leaseMs: 600_000, synchronization };
  return { ...terms, maxPayloadBytes: payloadBytes };
}

function words(job: CallJob, { name, data }: GivenValues): Words {
  return [text(name), parameterOf(job, name).dtype, toHex(bytesOf(data)) || "-"];
}

function text(value: string): string {
  return toHex(new TextEncoder().encode(value));
}

function message(fields: object): string {
  return toHex(encodeMessage(fields as Record<string, unknown>));
}
