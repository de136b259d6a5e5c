import { type FoundBroker, findBroker, setUpBroker } from "../../broker/index.ts";
import { type ErrorCode, ensureError } from "../../protocol/errors.ts";
import { confirm } from "../confirm.ts";
import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";

/** Errors after which a broker can be provided. */
const MISSING: readonly ErrorCode[] = ["NO_BROKER", "BROKER_TOO_OLD"];

/** Functions that find and provide brokers. */
const BROKERS = { findBroker, setUpBroker };

/**
 * The broker to start. If there is none, a person at a terminal is asked whether to provide one, as
 * `pserver setup` does.
 * @throws as `findBroker` and `setUpBroker` do.
 */
export async function findProgram(
  context: CliContext,
  output: Output,
  brokers: typeof BROKERS = BROKERS,
): Promise<FoundBroker> {
  const { environment, signal, stdin } = context;
  try {
    return await brokers.findBroker(environment, signal);
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    const isNamed = (environment["PSERVER_NATS_SERVER"] ?? "") !== "";
    if (!MISSING.includes(code) || isNamed || output.json || stdin.isTTY !== true) throw thrown;
    const question = 'Provide one now, as "pserver setup" does?';
    if (!(await confirm(context, `${message}. ${question}`))) throw thrown;
    return await brokers.setUpBroker({
      environment,
      signal,
      onMessage: (text) => output.message(text),
    });
  }
}
