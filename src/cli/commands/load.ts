import { stat } from "node:fs/promises";
import { hostname } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Command } from "commander";
import { KNOWN_RULES } from "../../actors/fold/rules.ts";
import type { Client } from "../../client/client.ts";
import type { OptimizerState } from "../../client/push/optimizer-state.ts";
import {
  type MergedTensor,
  mergeSparse,
  type OpenModel,
  openModel,
  type RestorableState,
  shardsByName,
  type TensorHeader,
  type TensorSource,
  underKnownNames,
} from "../../model-files/index.ts";
import { type ParameterConfig, toConfig } from "../../protocol/config/index.ts";
import { DTYPES, type TensorData } from "../../protocol/dtypes.ts";
import { type ErrorCode, ensureError, mismatch, PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import { elementCount, sameShape, type Tensor } from "../../protocol/tensor.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import { withAdmin, withTrainer } from "../open-job.ts";
import {
  addConfigOptions,
  type ConfigFlags,
  hasConfig,
  toConfigs,
} from "../options/config-options.ts";
import {
  addJobOptions,
  addOutputOptions,
  addTrainerOption,
  givenTimeout,
  type TrainerFlags,
  WHILE_IN_PROGRESS,
} from "../options/connection-options.ts";
import { addNameOptions, chosenTensors, type NameFlags } from "../options/name-options.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import { loadableOf } from "../output/left-out.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { groupBytes, inBoundedOrder, readTensor } from "../tensor-files.ts";

/** For each tensor of a file, by its name: the parameters that its values go into, in the order of its rows. */
type OverwritePlan = ReadonlyMap<string, readonly ParameterInfo[]>;

/**
 * Finds the parameters of an initialized job that each tensor of a file overwrites: the one of its name,
 * or the sparse shards `<name>:sparse-0` … that a save joins into such a tensor.
 * @throws UNKNOWN_PARAMETER, BAD_DTYPE, BAD_SHAPE or STATIC for a tensor that does not fit; MISSING_SHARD
 * if the job lacks one of the shards; BAD_NAME if two tensors go into one parameter.
 */
function planOverwrite(
  tensors: readonly TensorSource[],
  existing: readonly ParameterInfo[],
): OverwritePlan {
  const byName = new Map(existing.map((info) => [info.name, info]));
  const shards = shardsByName(existing);
  const taken = new Set<string>();
  const plan = new Map<string, readonly ParameterInfo[]>();
  for (const { header } of tensors) {
    const { name } = header;
    const own = byName.get(name);
    const joined = own ? { header: own, parts: [own] } : joinShards(name, shards.get(name));
    checkFit(header, joined);
    for (const { name: target } of joined.parts) {
      if (taken.has(target)) throw refusal("BAD_NAME", target, "values once", "values twice");
      taken.add(target);
    }
    plan.set(name, joined.parts);
  }
  return plan;
}

/** Splits a tensor into those of its target parameters, with their names. The parts are views, not copies. */
function splitTensor(
  { dtype, data }: Tensor,
  targets: readonly ParameterInfo[],
): [name: string, part: Tensor][] {
  const parts: [string, Tensor][] = [];
  let start = 0;
  for (const { name, shape } of targets) {
    const end = start + elementCount(shape);
    parts.push([name, { dtype, shape, data: data.subarray(start, end) }]);
    start = end;
  }
  return parts;
}

function joinShards(
  name: string,
  shards: readonly ParameterInfo[] = [],
): MergedTensor<ParameterInfo> {
  const joined = shards.length === 0 ? undefined : mergeSparse(shards)[0];
  if (joined !== undefined) return joined;
  const expected = "parameters of the initialized job only";
  throw refusal("UNKNOWN_PARAMETER", name, expected, "another one");
}

function checkFit(
  { name, dtype, shape }: TensorHeader,
  { header: expected, parts }: MergedTensor<ParameterInfo>,
): void {
  if (expected.dtype !== dtype) throw refusal("BAD_DTYPE", name, expected.dtype, dtype);
  if (!sameShape(expected.shape, shape)) {
    throw refusal("BAD_SHAPE", name, `[${expected.shape}]`, `[${shape}]`);
  }
  const fixed = parts.find(({ config }) => config.static);
  if (fixed !== undefined) {
    throw refusal("STATIC", fixed.name, "parameters that are not static", "a static one");
  }
}

function refusal(
  code: ErrorCode,
  parameter: string,
  expected: string,
  received: string,
): PserverError {
  return mismatch(code, quoteName(parameter), expected, received, { parameter });
}

/** Options of loading a model. */
export interface LoadOptions {
  /** How each parameter of a new job is updated, by name. */
  readonly configs: ReadonlyMap<string, ParameterConfig>;
  /** Whether the values of a job that is initialized are overwritten; its configuration stays. */
  readonly overwrite: boolean;
  /** The file's metadata, which may name other names of tied weights. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What optimizers have kept of the values, by parameter; a job that is initialized keeps its own. */
  readonly states?: ReadonlyMap<string, RestorableState>;
  /** For the whole load; without it each call may last as long as it makes progress. */
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

/** A model that was loaded into a job. */
export interface LoadedModel {
  readonly parameters: number;
  readonly bytes: number;
  /** Whether the job was initialized before, so that its values were overwritten. */
  readonly overwritten: boolean;
  /** Number of parameters that go on with what their optimizers had kept. */
  readonly restored: number;
}

/** Reads what an optimizer has kept of the values of a parameter. @throws what the file's reader throws. */
async function readState({ updates, slots }: RestorableState): Promise<OptimizerState> {
  const read: TensorData[] = [];
  for (const slot of slots) read.push((await readTensor(slot)).data);
  return { updates, slots: read };
}

/** Options of a call of a load. */
interface LoadingCall {
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

/** The client's calls that loading a model needs. */
export type LoadingClient = Pick<
  Client,
  "beginInit" | "initParams" | "finishInit" | "status" | "listParams" | "setParams"
>;

/**
 * Initializes a job with the tensors of a model, or overwrites the values of an initialized one. A tensor
 * that a save joined from sparse shards is split into them again. Memory holds a few tensors at a time.
 * @throws ALREADY_INITIALIZED if the job is ready or has parameters, and `overwrite` is false; as
 * {@link planOverwrite} before anything is overwritten; NOT_SELECTED while another trainer initializes
 * the job; what the client and the file's reader throw.
 */
export async function loadModel(
  client: LoadingClient,
  given: readonly TensorSource[],
  options: LoadOptions,
): Promise<LoadedModel> {
  const totalBytes = groupBytes(given);
  const { signal, timeoutMs } = options;
  const startedMs = performance.now();
  const call = (): LoadingCall => {
    if (timeoutMs === undefined) return { signal };
    return { timeoutMs: Math.max(1, timeoutMs + startedMs - performance.now()), signal };
  };
  let doneBytes = 0;
  const sendAll = (
    tensors: readonly TensorSource[],
    send: (group: ReadonlyMap<string, Tensor>) => Promise<unknown>,
  ): Promise<void> =>
    inBoundedOrder(tensors, async (group) => {
      const values = new Map<string, Tensor>();
      for (const source of group) {
        signal.throwIfAborted();
        values.set(source.header.name, await readTensor(source));
      }
      await send(values);
      doneBytes += groupBytes(group);
      options.onProgress(doneBytes, totalBytes);
    });
  const existing = (await client.listParams(call())).filter(({ ready }) => ready);
  const [first] = existing;
  if (first !== undefined) {
    if (!options.overwrite) throw alreadyInitialized(`it has ${quoteName(first.name)}`);
    const known = new Set(existing.map(({ name }) => name));
    const tensors = underKnownNames(given, options.metadata, known);
    const parts = planOverwrite(tensors, existing);
    await sendAll(tensors, (group) => {
      const values = [...group].flatMap(([name, tensor]) =>
        splitTensor(tensor, parts.get(name) ?? []),
      );
      return client.setParams(new Map(values), call());
    });
    const parameters = [...parts.values()].reduce((sum, { length }) => sum + length, 0);
    return { parameters, bytes: totalBytes, overwritten: true, restored: 0 };
  }
  if (!(await client.beginInit({ ...call(), wait: false })))
    throw await notSelected(client, call());
  await sendAll(given, async (group) => {
    const states = new Map<string, OptimizerState>();
    for (const name of group.keys()) {
      signal.throwIfAborted();
      const state = options.states?.get(name);
      if (state !== undefined) states.set(name, await readState(state));
    }
    const optimizerState = (name: string): OptimizerState | undefined => states.get(name);
    const configOf = (name: string): ParameterConfig | object => options.configs.get(name) ?? {};
    await client.initParams(group, configOf, { ...call(), optimizerState });
  });
  await client.finishInit(call());
  const restored = options.states?.size ?? 0;
  return { parameters: given.length, bytes: totalBytes, overwritten: false, restored };
}

async function notSelected(client: LoadingClient, call: LoadingCall): Promise<PserverError> {
  const { state, by } = await client.status(call);
  if (state === "ready") return alreadyInitialized(`it was by ${quoteName(by)}`);
  return new PserverError("NOT_SELECTED", `the job is being initialized by ${quoteName(by)}`, {
    state,
    by,
  });
}

function alreadyInitialized(how: string): PserverError {
  return new PserverError("ALREADY_INITIALIZED", `the job is initialized already: ${how}`);
}

const TIMEOUT_MS = 600_000;

interface LoadFlags extends TrainerFlags, ConfigFlags, NameFlags, OutputFlags {
  readonly overwrite?: boolean;
  readonly skipUnsupported?: boolean;
  readonly valuesOnly?: boolean;
}

/**
 * Adds the command `pserver load`, which initializes a job from a model file, or overwrites the values of an
 * initialized one.
 */
export function registerLoad(program: Command, context: CliContext): void {
  const command = program
    .command("load")
    .summary("initialize a job with the model in a file")
    .description("initialize a job with the parameters of a model file")
    .argument(
      "<path>",
      "a .safetensors, .safetensors.index.json, .npz, .tar or .tar.gz file, or a saved directory",
    )
    .option("--overwrite", "overwrite the values of a job that is initialized")
    .option("--values-only", "of a file with optimizer state: take the values alone")
    .option("--skip-unsupported", "leave out tensors that no parameter can hold");
  addJobOptions(addConfigOptions(addNameOptions(command)), TIMEOUT_MS, WHILE_IN_PROGRESS);
  addOutputOptions(addTrainerOption(command)).action((path: string, flags: LoadFlags) =>
    runLoad(context, path, flags, givenTimeout(command)),
  );
  addHelp(command, {
    "An initialized job": [
      "  It is refused with ALREADY_INITIALIZED, and nothing is changed. With --overwrite its",
      "  parameters get the values of the file, one after the other; what they are updated with",
      "  stays. Sparse shards, which a save joins, get their rows of the joined tensor back. An",
      "  interrupted load leaves the job uninitialized: load again.",
    ],
    "Where the file is": [
      "  A path from the current directory. If nothing is there, the model directories of the job's",
      "  hosts on this machine are looked in, so that load x finds what save x has written.",
    ],
    "Element types": [
      "  Tensors keep their type, half floats, booleans and integers of 8 bits too; only integers of",
      "  16 bits are loaded as int32, with the same values. A file with tensors of other types that no",
      "  parameter has (float8, complex), or without elements, is refused; with --skip-unsupported these",
      "  are left out, each with a warning. bfloat16 in npz is read as numpy writes that of ml_dtypes.",
    ],
    Names: [
      "  --only takes tensors whose whole name fits a pattern, as it is in the file. --rename gives them",
      "  other names: --rename 'model.*=*' takes a prefix away. The file of a model in several files is",
      "  its index, model.safetensors.index.json.",
    ],
    Configuration: [
      "  Most files hold values only. The optimizer is given here; by default it is sgd with the",
      "  learning rate that each gradient brings. A --config for one parameter overrides one for",
      "  all, which overrides the other flags. Its entries are in docs/reference/protocol.md.",
    ],
    "With the optimizer": [
      '  A file of "pserver save --with-optimizer" brings the configurations, what optimizers keep, and',
      "  the number of updates, into any number of shards: training goes on as from the saved moment.",
      "  With --values-only, and in a job that is initialized, only values are taken.",
    ],
    "With --json": ['  {"parameters","bytes","overwritten","restored","skipped"} once it is done.'],
    Examples: [
      "  pserver load model.safetensors --optimizer adamw --learning-rate 0.001",
      "  pserver load --job mnist weights.npz --overwrite",
      `  pserver load m.npz --config '{"clipNorm":1}' --config 'emb={"l2":0.1}'`,
      "  pserver load m.npz --config @training.yaml",
      "  pserver load llama/model.safetensors.index.json --rename 'model.*=*'",
    ],
  });
}

/**
 * Opens a model file of this machine: the one that the path leads to, else one that a host of the job has saved
 * under this name here.
 * @throws as `openModel`; what keeps the hosts from being asked.
 */
async function openHere(
  context: CliContext,
  output: Output,
  path: string,
  flags: LoadFlags,
): Promise<OpenModel> {
  try {
    return await openModel(path, context.signal);
  } catch (thrown) {
    const error = ensureError(thrown);
    const isAbsent = error.code === "IO" && error.details["errno"] === "ENOENT";
    if (!isAbsent || isAbsolute(path) || path.split("/").includes("..")) throw error;
    const directories = await modelDirectories(context, flags);
    for (const saved of directories.map((directory) => join(directory, path))) {
      if (!(await isThere(saved))) continue;
      output.message(`reading ${saved}, as there is no such file here`);
      return await openModel(saved, context.signal);
    }
    const looked = directories.length === 0 ? "" : `, nor is it in ${directories.join(", ")}`;
    throw new PserverError("IO", error.message + looked, error.details, { cause: error });
  }
}

/** Returns where hosts of the job that run on this machine save models. */
async function modelDirectories(context: CliContext, flags: LoadFlags): Promise<string[]> {
  const { hosts } = await withAdmin(context, flags, (admin) => admin.participants());
  const here = hosts.filter(({ machine }) => machine === hostname());
  const directories = here.map(({ modelDirectory }) => modelDirectory);
  return [...new Set(directories)].filter((directory) => typeof directory === "string");
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    // Where it cannot be examined, such as in another container, it is not for this command.
    return false;
  }
}

async function runLoad(
  context: CliContext,
  path: string,
  flags: LoadFlags,
  timeout: { readonly timeoutMs?: number },
): Promise<void> {
  const output = openOutput(context, flags);
  const file = await openHere(context, output, path, flags);
  try {
    const model = chosenTensors(file, flags);
    const { tensors, leftOut: skipped } = loadableOf(output, model, flags.skipUnsupported === true);
    const states = statesOf(path, model, flags);
    const configs = toConfigs(
      flags,
      tensors.map(({ header }) => header.name),
    );
    for (const [name, { config }] of states) configs.set(name, config);
    const overwrite = flags.overwrite === true;
    const { metadata } = model;
    const options = { configs, overwrite, metadata, states, ...timeout, signal: context.signal };
    const loaded = await output
      .progress("loading")
      .reported((onProgress) =>
        withTrainer(context, flags, (client) =>
          loadModel(client, tensors, { ...options, onProgress }),
        ),
      );
    const { parameters, bytes, overwritten, restored } = loaded;
    const state = restored > 0 ? ", with optimizer state" : "";
    const what = `${formatCount(parameters, "parameter")}, ${formatBytes(bytes)}${state}`;
    if (output.json) output.value({ ...loaded, skipped });
    else output.message(`${overwritten ? "overwrote" : "loaded"} ${what}`);
    if (overwritten && states.size > 0) {
      output.warning("only values were taken: the job was initialized before");
    }
    if (overwritten && hasConfig(flags)) {
      output.warning("the job was initialized before: its configuration stays as it was");
    }
    if (!overwritten) tellWithoutRate(output, tensors, configs);
  } finally {
    await file.close();
  }
}

/**
 * Returns the optimizers' states that a load restores; none of a file without, or if only values are wanted.
 * @throws BAD_VALUE for flags that say another configuration; UNKNOWN_RULES.
 */
function statesOf(
  path: string,
  { optimizers }: OpenModel,
  flags: LoadFlags,
): ReadonlyMap<string, RestorableState> {
  if (optimizers === undefined || flags.valuesOnly === true) return new Map();
  if (hasConfig(flags)) {
    const text = `${path} has the configurations with the optimizer state: expected no other one, or --values-only`;
    throw new PserverError("BAD_VALUE", text, { path });
  }
  const { rules, states } = optimizers;
  if (KNOWN_RULES.has(rules)) return states;
  const expected = [...KNOWN_RULES.keys()];
  throw mismatch("UNKNOWN_RULES", `${path}: optimizer state`, `rules ${expected}`, rules, { path });
}

/** Warns of parameters without a learning rate: each of their gradients must bring one. */
function tellWithoutRate(
  output: Output,
  tensors: readonly TensorSource[],
  configs: ReadonlyMap<string, ParameterConfig>,
): void {
  const without = tensors.filter(({ header: { name, dtype } }) => {
    const { learningRate, optimizer, static: isStatic } = configs.get(name) ?? toConfig();
    // Updates of integers are added without a learning rate.
    const isTrained = DTYPES[dtype].float && optimizer.name !== "none" && !isStatic;
    return isTrained && learningRate === undefined;
  });
  const [first] = without;
  if (first === undefined) return;
  const which =
    without.length === 1 ? quoteName(first.header.name) : `${without.length} parameters`;
  output.message(`no learning rate was given for ${which}: each gradient must bring one`);
}
