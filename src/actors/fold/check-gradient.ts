import { checkTakesGradients } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { PartIndex } from "../../protocol/parts.ts";
import type { PushOperation } from "../../protocol/records.ts";
import type { StoredBlock } from "./block.ts";
import type { StepTable } from "./step-table.ts";
import { isFloat } from "./tensor-arithmetic.ts";

/**
 * Passes if a block takes a gradient of this step from this trainer. In `sync`, gradients that are
 * applied at once in every job, those of integers, may name any step or none.
 * @throws BAD_VALUE, NOT_MEMBER, LATE or EARLY
 */
export function checkGradientStep(
  steps: StepTable,
  { label, plan, contributors }: StoredBlock,
  trainer: string,
  step: number | undefined,
): void {
  if (steps.synchronization.mode === "sync" && plan.accumulator === undefined) return;
  steps.checkGradient(trainer, step);
  if (!contributors.has(trainer)) return;
  throw new PserverError(
    "LATE",
    `${label}: expected one gradient of each trainer in step ${step}; received another one`,
  );
}

/**
 * Passes if the parameter's configuration takes this gradient.
 * @returns the divisor of the learning rate because of staleness; 1 or more.
 * @throws UNSUPPORTED, NO_LEARNING_RATE or BAD_VALUE
 */
export function checkGradient(
  block: StoredBlock,
  part: PartIndex | undefined,
  norm: number | undefined,
  operation: PushOperation & { readonly op: "grad" },
): number {
  checkPart(block, part);
  checkTaken(block);
  checkNorm(block, norm);
  checkRate(block, operation.lr);
  return versionsBehind(block, operation.seen);
}

/** @throws UNSUPPORTED for a part of which the rule could not tell what has been updated. */
function checkPart({ config, label }: StoredBlock, part: PartIndex | undefined): void {
  if (part === undefined || (config.sparse && part.inner === undefined)) return;
  const received = part.inner === undefined ? "some rows" : "some elements of some rows";
  const expected = config.sparse ? "whole rows" : "all rows: the parameter is not sparse";
  throw new PserverError(
    "UNSUPPORTED",
    `${label}: expected a gradient of ${expected}; received one of ${received}`,
  );
}

/** @throws UNSUPPORTED if elements of this type do not take gradients as they are configured. */
function checkTaken({ dtype, config, label }: StoredBlock): void {
  checkTakesGradients(dtype, config, label);
  if (isFloat(dtype)) return;
  const { gradientScale, clipNorm, clipValue } = config;
  if (gradientScale === 1 && clipNorm === undefined && clipValue === undefined) return;
  throw new PserverError(
    "UNSUPPORTED",
    `${label}: expected ${dtype} to be added as it is; received a configuration that scales or clips`,
  );
}

/** @throws BAD_VALUE if the gradient is to be clipped by its norm and names none. */
function checkNorm({ config, label }: StoredBlock, norm: number | undefined): void {
  const { clipNorm } = config;
  if (clipNorm === undefined || norm !== undefined) return;
  throw new PserverError(
    "BAD_VALUE",
    `${label}: expected the norm of the gradient, which is clipped to ${clipNorm}; received none`,
  );
}

/**
 * @throws NO_LEARNING_RATE if neither configuration nor call give one; BAD_VALUE for one that the
 * optimizer excludes, or that differs from the rate of earlier gradients of the step.
 */
function checkRate(block: StoredBlock, rate: number | undefined): void {
  const { label } = block;
  const { optimizer, learningRate } = block.config;
  if (optimizer.name === "none") {
    if (rate === undefined) return;
    const text = `${label}: optimizer none takes no learning rate; received ${rate}`;
    throw new PserverError("BAD_VALUE", text);
  }
  if (rate === undefined && learningRate === undefined) {
    throw new PserverError(
      "NO_LEARNING_RATE",
      `${label}: expected a learning rate in the parameter's configuration or in the call; ` +
        "received none",
    );
  }
  if (optimizer.name === "ftrl" && rate !== undefined && rate <= 0) {
    const text = `${label}: expected a learning rate above 0; received ${rate}`;
    throw new PserverError("BAD_VALUE", text);
  }
  if (block.accumulated === 0 || rate === block.openRate) return;
  throw new PserverError(
    "BAD_VALUE",
    `${label}: expected the learning rate of the step's first gradient, ` +
      `${block.openRate ?? "that of the configuration"}; received ${rate ?? "none"}`,
  );
}

/** @throws BAD_VALUE if the gradient names a version that the block has not reached. */
function versionsBehind(block: StoredBlock, seen: number | undefined): number {
  if (seen === undefined) return 1;
  if (seen > block.version) {
    throw new PserverError(
      "BAD_VALUE",
      `${block.label}: seen: expected a version of at most ${block.version}; received ${seen}`,
    );
  }
  return block.config.stalenessScaling ? Math.max(1, block.version - seen) : 1;
}
