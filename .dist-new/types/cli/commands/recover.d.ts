import { type Command } from "commander";
import type { ShardFindings } from "../../actors/recovery/findings.ts";
import { type CliContext } from "../context.ts";
import type { TextFormat } from "../output/colors.ts";
/** Describes the findings about a stopped shard for people. */
export declare function describeFindings(findings: ShardFindings, format: TextFormat): string[];
/** Adds the command `pserver recover`, which shows what shards have lost, and lets them go on without it. */
export declare function registerRecover(program: Command, context: CliContext): void;
//# sourceMappingURL=recover.d.ts.map