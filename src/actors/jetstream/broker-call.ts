import type { ErrorDetails } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";

/** The result of `run`; @throws its error as `fromBrokerError` makes it, naming the action. */
export async function brokerCall<Result>(
  action: string,
  details: ErrorDetails,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw fromBrokerError(error, action, details);
  }
}
