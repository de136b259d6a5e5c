import { checkTakesGradients } from "../../protocol/config/index.ts";
import { encodedBytes } from "../../protocol/encoding/encodings.ts";
import { type PartIndex, partElements, readPartIndex } from "../../protocol/parts.ts";
import type { PushOperation, PushRecord } from "../../protocol/records.ts";
import type { StoredBlock } from "./block.ts";
import { checkBytes, checkNotStatic, refused } from "./check-record.ts";
import type { Payload } from "./payload.ts";
import { isFloat } from "./tensor-arithmetic.ts";

/** What every push that fits its block has. */
interface FittingPush {
  readonly block: StoredBlock;
  readonly payload: Payload;
  /** The elements of the block that the payload is for; undefined: all. */
  readonly part: PartIndex | undefined;
  /** Of the trainer's whole tensor; a gradient that is clipped by its norm has one. */
  readonly norm: number | undefined;
}

/** A push with `alpha` and `beta` that passed every check. */
export interface MixChange extends FittingPush {
  readonly operation: PushOperation & { readonly op: "mix" };
}

/** A gradient that passed every check. */
export interface GradientChange extends FittingPush {
  readonly operation: PushOperation & { readonly op: "grad" };
  /** What staleness divides the learning rate by; 1 or more. */
  readonly behind: number;
}

/**
 * Passes if a push fits its block and the parameter's configuration takes it. Changes nothing.
 * @throws UNSUPPORTED, BAD_LENGTH, BAD_INDEX, STATIC, NO_LEARNING_RATE or BAD_VALUE
 */
export function checkPush(
  block: StoredBlock,
  record: PushRecord,
  data: Uint8Array,
): MixChange | GradientChange {
  const push = placed(block, record, data);
  checkNotStatic(block);
  const { operation } = record;
  const { payload, part, norm } = push;
  if (operation.op === "mix") return { block, payload, part, norm, operation };
  checkGradientPart(push);
  checkTaken(block);
  checkNorm(block, record.norm);
  checkRate(block, operation.lr);
  const behind = versionsBehind(block, operation.seen);
  return { block, payload, part, norm, operation, behind };
}

/** The elements of a push and where they belong. */
function placed(block: StoredBlock, record: PushRecord, data: Uint8Array): FittingPush {
  const { dtype, encoding, norm } = record;
  const found = record.part && readPartIndex(record.part, data, block.rows);
  const bytes = found?.elements ?? data;
  const elements = record.part ? partElements(record.part, block.rows) : block.count;
  checkBytes(block, encodedBytes(dtype, encoding, elements), bytes.length);
  return { block, payload: { dtype, encoding, bytes }, part: found, norm };
}

/** @throws UNSUPPORTED for a part of which the rule could not tell what has been updated. */
function checkGradientPart({ block, part }: FittingPush): void {
  if (part === undefined || (block.config.sparse && part.inner === undefined)) return;
  const received = part.inner === undefined ? "some rows" : "some elements of some rows";
  const expected = block.config.sparse ? "whole rows" : "all rows: the parameter is not sparse";
  throw refused(
    "UNSUPPORTED",
    `${block.label}: expected a gradient of ${expected}; received one of ${received}`,
  );
}

/** @throws UNSUPPORTED if elements of this type do not take the gradients that are configured. */
function checkTaken({ dtype, config, label }: StoredBlock): void {
  checkTakesGradients(dtype, config, label);
  if (isFloat(dtype)) return;
  const { gradientScale, clipNorm, clipValue } = config;
  if (gradientScale === 1 && clipNorm === undefined && clipValue === undefined) return;
  throw refused(
    "UNSUPPORTED",
    `${label}: expected ${dtype} to be added as it is; received a configuration that scales or clips`,
  );
}

/** @throws BAD_VALUE if the norm that a gradient is to be clipped by is not known. */
function checkNorm(block: StoredBlock, norm: number | undefined): void {
  const { clipNorm } = block.config;
  if (clipNorm === undefined || norm !== undefined) return;
  throw refused(
    "BAD_VALUE",
    `${block.label}: expected the norm of the gradient, which is clipped to ${clipNorm}; received none`,
  );
}

/**
 * @throws NO_LEARNING_RATE if neither configuration nor call give one, BAD_VALUE for one that the
 * optimizer or the gradients before it in the step exclude.
 */
function checkRate(block: StoredBlock, rate: number | undefined): void {
  const { label } = block;
  const { optimizer, learningRate } = block.config;
  if (optimizer.name === "none") {
    if (rate === undefined) return;
    throw refused("BAD_VALUE", `${label}: optimizer none takes no learning rate; received ${rate}`);
  }
  if (rate === undefined && learningRate === undefined) {
    throw refused(
      "NO_LEARNING_RATE",
      `${label}: expected a learning rate in the parameter's configuration or in the call; ` +
        "received none",
    );
  }
  if (optimizer.name === "ftrl" && rate !== undefined && rate <= 0) {
    throw refused("BAD_VALUE", `${label}: expected a learning rate above 0; received ${rate}`);
  }
  if (block.accumulated === 0 || rate === block.openRate) return;
  throw refused(
    "BAD_VALUE",
    `${label}: expected the learning rate of the step's first gradient, ` +
      `${block.openRate ?? "that of the configuration"}; received ${rate ?? "none"}`,
  );
}

/** @throws BAD_VALUE if the block has not had the version that the gradient was made from. */
function versionsBehind(block: StoredBlock, seen: number | undefined): number {
  if (seen === undefined) return 1;
  if (seen > block.version) {
    throw refused(
      "BAD_VALUE",
      `${block.label}: seen: expected a version of at most ${block.version}; received ${seen}`,
    );
  }
  return block.config.stalenessScaling ? Math.max(1, block.version - seen) : 1;
}
