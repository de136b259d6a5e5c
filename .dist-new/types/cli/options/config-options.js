import { InvalidArgumentError, Option } from "commander";
import { isJsonObject } from "../../model-files/file-text.js";
import { OPTIMIZERS, toConfig, } from "../../protocol/config/index.js";
import { parseConfigText } from "../../protocol/config/parameter-config.js";
import { mismatch, PserverError } from "../../protocol/errors.js";
import { defined } from "../../protocol/fields.js";
import { quoteName } from "../../protocol/names.js";
import { readText } from "../../system/file-errors.js";
import { finiteNumber } from "./parse-values.js";
const GIVEN = /^(?:(?<name>.+?)=)?(?<text>[{@].*)$/s;
/** Adds the flags that say how parameters are updated. */
export function addConfigOptions(command) {
    return command
        .addOption(new Option("--optimizer <name>", "the rule that gradients go through").choices(OPTIMIZERS))
        .option("--learning-rate <rate>", "for gradients that come without one", finiteNumber)
        .option("--allow-non-finite", "let values and updates hold NaN and infinities")
        .option("--config <[name=]config>", "JSON, or @FILE with JSON or YAML, for all parameters or the one named; may be repeated", collectConfig);
}
/** Whether any of the flags was given. */
export function hasConfig(flags) {
    const { config, optimizer, learningRate, allowNonFinite } = flags;
    return [config, optimizer, learningRate, allowNonFinite].some((flag) => flag !== undefined);
}
/**
 * Reads the configuration of each parameter. Its entries come from `--config` for the parameter, else from
 * `--config` for all, else from the other flags.
 * @throws BAD_VALUE for a name that is not among `names`; BAD_CONFIG, naming the parameter; IO.
 */
export function toConfigs(flags, names) {
    const { optimizer, learningRate, allowNonFinite } = flags;
    const given = (flags.config ?? []).map(({ name, text }) => ({ name, settings: read(text) }));
    const unknown = given.find(({ name }) => name !== undefined && !names.includes(name));
    if (unknown !== undefined) {
        const received = quoteName(unknown.name);
        throw mismatch("BAD_VALUE", "--config", "a parameter of the model", received);
    }
    const forAll = given.filter(({ name }) => name === undefined);
    return new Map(names.map((name) => {
        const own = given.filter((config) => config.name === name);
        const entries = [...forAll, ...own].map(({ settings }) => settings);
        const all = defined({ optimizer, learningRate, allowNonFinite });
        return [name, checked(name, Object.assign({}, all, ...entries))];
    }));
}
function read(text) {
    const settings = parseConfigText(text.startsWith("@") ? readText("read the configuration", text.slice(1)) : text);
    if (isJsonObject(settings))
        return settings;
    throw mismatch("BAD_CONFIG", "--config", "a map of settings", "another value");
}
function checked(name, settings) {
    try {
        return toConfig(settings);
    }
    catch (error) {
        if (!(error instanceof PserverError))
            throw error;
        const details = { ...error.details, parameter: name };
        const message = `${quoteName(name)}: ${error.message}`;
        throw new PserverError(error.code, message, details, { cause: error });
    }
}
function collectConfig(text, before = []) {
    const { name, text: config } = GIVEN.exec(text)?.groups ?? {};
    if (config === undefined) {
        const expected = 'expected [NAME=]{"entry":value,…} or [NAME=]@FILE';
        throw new InvalidArgumentError(`${expected}; received ${JSON.stringify(text)}`);
    }
    return [...before, { text: config, ...(name === undefined ? {} : { name }) }];
}
//# sourceMappingURL=config-options.js.map