import { resolve } from "node:path";
import { resolveSettings } from "../../client/wire/settings.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import { defined } from "../../protocol/defined.ts";
import type { CliContext } from "../context.ts";
import { unlessAborted, untilAborted } from "../interrupts.ts";
import { type AnswerFlags, toAnswerConnection } from "../options/answer-options.ts";
import { type ConnectionFlags, toOverrides } from "../options/connection-options.ts";
import { type HostFlags, toHostSettings } from "../options/host-options.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { hostEventPrinter } from "./host-events.ts";

/** Flags of `pserver host`. */
export interface RunHostFlags extends HostFlags, ConnectionFlags, AnswerFlags, OutputFlags {
  readonly job: string;
  readonly id?: string;
  readonly replicas?: number;
}

const MODEL_DIRECTORY = ".pserver/models";

/**
 * Runs one host until it is interrupted.
 * @throws the error that kept it from starting, or that ended it; ABORTED if it is interrupted before it
 * serves.
 */
export async function runHost(
  context: CliContext,
  output: Output,
  flags: RunHostFlags,
): Promise<void> {
  const { signal } = context;
  const modelDirectory = resolve(flags.modelDir ?? MODEL_DIRECTORY);
  const connection = resolveSettings(toOverrides(flags), context.environment);
  const answerConnection = toAnswerConnection(flags, connection);
  const { id: wantedId, replicas } = flags;
  await makeDirectories(modelDirectory);
  // Loaded here, so that other commands start faster.
  const { startHost } = await import("../../actors/host/host.ts");
  const host = await unlessAborted(
    signal,
    startHost({
      connection,
      ...toHostSettings({ ...flags, modelDir: modelDirectory }),
      ...defined({ answerConnection, id: wantedId, replicas }),
      onEvent: hostEventPrinter(output),
    }),
  );
  const { id } = host;
  const { shards } = host.settings;
  const { job } = flags;
  if (output.json) output.value({ ready: true, id, job, shards });
  else output.lines([`host ${id} serves job ${job} (${shards} shards in all); Ctrl-C stops it`]);
  const reason = await Promise.race([untilAborted(signal), host.stopped]);
  if (reason !== undefined) throw reason;
  output.message("stopping; Ctrl-C again stops at once");
  await host.close();
}
