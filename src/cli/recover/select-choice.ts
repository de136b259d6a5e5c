import type { RecoveryChoice, ShardFindings } from "../../actors/recovery/findings.ts";
import { PserverError } from "../../protocol/errors.ts";
import { mismatch } from "../../protocol/mismatch.ts";

/** The state that the command line asks for. */
export interface WantedState {
  readonly from: RecoveryChoice["from"];
  /** The record of an older snapshot. */
  readonly record?: number;
}

/**
 * Finds the choice that the command line asks for.
 * @throws BAD_VALUE, naming the shard's choices, if it has no such choice.
 */
export function selectChoice(findings: ShardFindings, wanted: WantedState): RecoveryChoice {
  const { shard, choices } = findings;
  const found = choices.find(
    ({ from, seq }) =>
      from === wanted.from && (wanted.record === undefined || wanted.record === seq),
  );
  if (found !== undefined) return found;
  const expected = choices.map(({ from, seq }) => `${from} at record ${seq}`).join(", ");
  const record = wanted.record === undefined ? "" : ` at record ${wanted.record}`;
  const choice = expected === "" ? "nothing, for nothing of it can be saved" : expected;
  throw mismatch("BAD_VALUE", `shard ${shard}`, choice, `${wanted.from}${record}`, { shard });
}

/** @throws BAD_VALUE if a shard that was named has not stopped for a loss. */
export function checkStopped({ shard, condition, error }: ShardFindings): void {
  if (condition === "stopped") return;
  const state =
    condition === "failed"
      ? `it has failed for another reason: ${error?.code}: ${error?.message}`
      : condition === "serving"
        ? "it is served"
        : "nothing of it is lost; start a host";
  throw new PserverError(
    "BAD_VALUE",
    `shard ${shard}: expected one that has stopped because something is lost; ${state}`,
    { shard, expected: "stopped", received: condition },
  );
}
