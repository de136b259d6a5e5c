import { type Command } from "commander";
import { type ParameterConfig } from "../../protocol/config/index.ts";
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
/** Adds the flags that say how parameters are updated. */
export declare function addConfigOptions(command: Command): Command;
/** Whether any of the flags was given. */
export declare function hasConfig(flags: ConfigFlags): boolean;
/**
 * Reads the configuration of each parameter. Its entries come from `--config` for the parameter, else from
 * `--config` for all, else from the other flags.
 * @throws BAD_VALUE for a name that is not among `names`; BAD_CONFIG, naming the parameter; IO.
 */
export declare function toConfigs(flags: ConfigFlags, names: readonly string[]): Map<string, ParameterConfig>;
export {};
//# sourceMappingURL=config-options.d.ts.map