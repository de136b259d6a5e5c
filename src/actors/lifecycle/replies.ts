import type { BeginReply, Fields, ParameterInfo } from "../../protocol/index.ts";
import type { Lifecycle, ShardPosition } from "./machine.ts";
import { type Parameter, standing } from "./parameter-record.ts";

/** Answer to a verb of the lifecycle of a job or of one parameter. */
export function beginReply(lifecycle: Lifecycle, selected: boolean): BeginReply {
  const { epoch, trainer } = lifecycle.context;
  return { selected, state: lifecycle.state, epoch, by: trainer };
}

/** The parameter as replies carry it. */
export function infoOf(parameter: Parameter, job: Lifecycle): ParameterInfo {
  return {
    ...parameter.declaration,
    epoch: parameter.lifecycle.context.epoch,
    ready: standing(parameter, job) === "ready",
    layout: parameter.layout,
  };
}

/** Where the journals stood when the parameter became ready; empty before. */
export function readyAt(parameter: Parameter, job: Lifecycle): readonly ShardPosition[] {
  if (standing(parameter, job) !== "ready") return [];
  return parameter.lifecycle.state === "ready" ? parameter.lifecycle.context.at : job.context.at;
}

/** Entries of a reply that names one parameter. */
export function parameterReply(parameter: Parameter, job: Lifecycle): Fields {
  return { parameters: [infoOf(parameter, job)], at: readyAt(parameter, job) };
}
