import { type Command, InvalidArgumentError, Option } from "commander";
import { isJsonObject } from "../../model-files/file-text.ts";
import {
  OPTIMIZERS,
  type ParameterConfig,
  type ParameterSettings,
  toConfig,
} from "../../protocol/config/index.ts";
import { parseConfigText } from "../../protocol/config/parameter-config.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { quoteName } from "../../protocol/names.ts";
import { readText } from "../../system/file-errors.ts";
import { finiteNumber } from "./parse-values.ts";

/** A configuration on the command line, for one parameter or, without a name, for all. */
interface ConfigArgument {
  readonly name?: string;
  /** JSON or YAML text, or `@` and the path of a file that holds some. */
  readonly text: string;
}

/** Flags that say how parameters are updated. */
export interface ConfigFlags {
  readonly config?: readonly ConfigArgument[];
  readonly optimizer?: string;
  readonly learningRate?: number;
  readonly allowNonFinite?: boolean;
}

const GIVEN = /^(?:(?<name>.+?)=)?(?<text>[{@].*)$/s;

/** Adds the flags that say how parameters are updated. */
export function addConfigOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--optimizer <name>", "the rule that gradients go through").choices(OPTIMIZERS),
    )
    .option("--learning-rate <rate>", "for gradients that come without one", finiteNumber)
    .option("--allow-non-finite", "let values and updates hold NaN and infinities")
    .option(
      "--config <[name=]config>",
      "JSON, or @FILE with JSON or YAML, for all parameters or the one named; may be repeated",
      collectConfig,
    );
}

/** Whether any of the flags was given. */
export function hasConfig(flags: ConfigFlags): boolean {
  const { config, optimizer, learningRate, allowNonFinite } = flags;
  return [config, optimizer, learningRate, allowNonFinite].some((flag) => flag !== undefined);
}

/**
 * Reads the configuration of each parameter. Its entries come from `--config` for the parameter, else from
 * `--config` for all, else from the other flags.
 * @throws BAD_VALUE for a name that is not among `names`; BAD_CONFIG, naming the parameter; IO.
 */
export function toConfigs(
  flags: ConfigFlags,
  names: readonly string[],
): Map<string, ParameterConfig> {
  const { optimizer, learningRate, allowNonFinite } = flags;
  const given = (flags.config ?? []).map(({ name, text }) => ({ name, settings: read(text) }));
  const unknown = given.find(({ name }) => name !== undefined && !names.includes(name));
  if (unknown !== undefined) {
    const received = quoteName(unknown.name);
    throw mismatch("BAD_VALUE", "--config", "a parameter of the model", received);
  }
  const forAll = given.filter(({ name }) => name === undefined);
  return new Map(
    names.map((name) => {
      const own = given.filter((config) => config.name === name);
      const entries = [...forAll, ...own].map(({ settings }) => settings);
      const all = defined({ optimizer, learningRate, allowNonFinite });
      return [name, checked(name, Object.assign({}, all, ...entries))];
    }),
  );
}

function read(text: string): ParameterSettings {
  const settings = parseConfigText(
    text.startsWith("@") ? readText("read the configuration", text.slice(1)) : text,
  );
  if (isJsonObject(settings)) return settings;
  throw mismatch("BAD_CONFIG", "--config", "a map of settings", "another value");
}

function checked(name: string, settings: unknown): ParameterConfig {
  try {
    return toConfig(settings);
  } catch (error) {
    if (!(error instanceof PserverError)) throw error;
    const details = { ...error.details, parameter: name };
    const message = `${quoteName(name)}: ${error.message}`;
    throw new PserverError(error.code, message, details, { cause: error });
  }
}

function collectConfig(text: string, before: readonly ConfigArgument[] = []): ConfigArgument[] {
  const { name, text: config } = GIVEN.exec(text)?.groups ?? {};
  if (config === undefined) {
    const expected = 'expected [NAME=]{"entry":value,…} or [NAME=]@FILE';
    throw new InvalidArgumentError(`${expected}; received ${JSON.stringify(text)}`);
  }
  return [...before, { text: config, ...(name === undefined ? {} : { name }) }];
}
