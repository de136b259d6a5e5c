import { decodeMessage, type Message } from "../../../protocol/codec.ts";
import { type DilocoSettings, isRobust } from "../../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../../protocol/errors.ts";
import { MEMBERS_MAX } from "../../../protocol/limits.ts";
import { type Contribution, parseContribution } from "../../../protocol/messages/contributions.ts";
import type { CloseRecord } from "../../../protocol/messages/host-records.ts";
import type { RecordHeader } from "../../../protocol/messages/records.ts";
import { quoteName } from "../../../protocol/names.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import { checkBatch } from "../batch/check-batch.ts";
import type { RunChange } from "../batch/run-change.ts";
import type { BlockActor } from "../block-actor.ts";
import type { BlockTable } from "../block-table.ts";
import type { RecordContext } from "../check-update.ts";
import type { DeclarationTable } from "../declaration-table.ts";
import { GuardRejection, judgeNorm, verdictOf } from "../guards/judge.ts";
import type { Rules } from "../rules.ts";
import type { StepTable } from "../step-table.ts";
import {
  addSquares,
  addToMeans,
  applyMerged,
  discardSums,
  keepVersion,
  type TensorNorms,
} from "./displacement.ts";
import {
  type Fragment,
  type FragmentTable,
  newFragment,
  type RoundContribution,
} from "./fragment-table.ts";
import { KeptContribution } from "./kept-contribution.ts";
import { encodePart, type KeptLimits } from "./open-contributions.ts";
import { mergeOf, mergeRobustly } from "./robust-merge.ts";

/** The state that contributions are folded into. */
export interface FragmentFold {
  readonly memory: ShardMemory;
  readonly blocks: BlockTable;
  readonly declarations: DeclarationTable;
  readonly steps: StepTable;
  readonly fragments: FragmentTable;
  readonly rules: Rules;
}

/** What a contribution, or a part of one, has come to. */
export interface Contributed {
  readonly contribution: Contribution;
  /** The round that it counts in; 0 while parts of it are missing. */
  readonly round: number;
}

/** A rejection of a contribution that was complete, and is counted as dropped. */
class DroppedContribution extends PserverError {}

/**
 * Takes a contribution, or a part of one: it counts in the open round of its fragment once it is complete. After a
 * rejection all its parts are forgotten, and nothing else has changed but the account of the trainer.
 * @throws the rejection: UNSUPPORTED, NOT_MEMBER, BAD_MESSAGE, BAD_VALUE, UNKNOWN_PARAMETER, NOT_INITIALIZED,
 * STALE_EPOCH, BAD_INDEX, BAD_DTYPE, BAD_LENGTH, NON_FINITE, LATE, BUSY or GUARDED.
 */
export function contribute(
  fold: FragmentFold,
  context: RecordContext,
  seq: number,
  header: RecordHeader,
  message: Message,
): Contributed {
  const { trainer } = context;
  const settings = settingsOf(fold.steps);
  if (fold.steps.clockOf(trainer) === undefined) throw notMember(trainer);
  const contribution = parseContribution(message.fields);
  try {
    const round = take(fold, context, { seq, header, message, contribution, settings });
    return { contribution, round };
  } catch (error) {
    fold.fragments.open.drop(trainer, contribution.id);
    const isWhole = error instanceof DroppedContribution || error instanceof GuardRejection;
    if (isWhole) count(fold, trainer, contribution, "dropped");
    throw error;
  }
}

/** A record with a contribution, and what it is checked against. */
interface ReceivedContribution {
  readonly seq: number;
  readonly header: RecordHeader;
  readonly message: Message;
  readonly contribution: Contribution;
  readonly settings: DilocoSettings;
}

/** @returns the round that the contribution counts in; 0 while parts are missing. */
function take(
  fold: FragmentFold,
  recordContext: RecordContext,
  { seq, header, message, contribution, settings }: ReceivedContribution,
): number {
  const { fragments, declarations } = fold;
  const { trainer } = recordContext;
  const { base, part, parts } = contribution;
  const context = { ...recordContext, fragment: contribution.fragment };
  const weight = weightOf(settings, contribution);
  if (declarations.ofFragment(contribution.fragment).length === 0) throw unknown(contribution);
  const version = fragments.get(contribution.fragment)?.version ?? 0;
  if (base > version) {
    const text = `base: expected a version of fragment ${quoteName(contribution.fragment)} of at most ${version}; received ${base}`;
    throw new PserverError("BAD_VALUE", text);
  }
  const { session } = header;
  const isLast = parts === 1 || fragments.open.isLast(trainer, session, contribution);
  const needsAll = needsContributions(fold, contribution.fragment, settings);
  const kept = isLast && !needsAll ? NO_BYTES : encodePart(contribution, message);
  const limits = {
    bytesMax: fold.rules.keptContributionBytesMax,
    roundBytes: fragments.roundBytes,
  };
  fragments.open.check(trainer, session, contribution, isLast ? 0 : kept.length, limits);
  const runs = checkPart(context, header, message);
  if (!isLast) {
    fragments.open.add(trainer, session, contribution, kept);
    return 0;
  }
  const earlier = parts === 1 ? [] : fragments.open.partsOf(trainer);
  const whole: Whole = {
    ...{ context, header, message, own: part, runs },
    earlier: earlier.map(({ part: number, bytes }) => ({
      part: number,
      message: decodeMessage(bytes),
    })),
  };
  const { fragment: name } = contribution;
  const fragment = fragments.get(name) ?? newFragment(name);
  const refusal = staleness(fold, fragment, trainer, contribution, settings);
  const measured = checkWhole(
    fold,
    whole,
    contribution,
    refusal === undefined ? version : undefined,
  );
  if (refusal !== undefined) throw refusal;
  const keptParts = needsAll ? [...earlier, { part, bytes: kept }].sort(byPart) : [];
  const keptBytes = keptParts.map(({ bytes }) => bytes);
  if (needsAll) checkRoom(fragments, trainer, keptBytes, limits);
  const tensors = checkNorms(fold, context, measured);
  const counted = lateWeight(weight, version - base, settings);
  addToRound(fold, fragments.obtain(name), whole, contribution, {
    weight: counted,
    tensors,
    seq,
    kept: keptBytes,
  });
  fragments.open.drop(trainer);
  count(fold, trainer, contribution, "processed");
  return version + 1;
}

/** Whether the rounds of a fragment need all their contributions until they close. */
function needsContributions(
  { declarations }: FragmentFold,
  fragment: string,
  settings: DilocoSettings,
): boolean {
  return declarations.ofFragment(fragment).some((block) => isRobust(mergeOf(block, settings)));
}

/**
 * Whether the displacement of a contribution is known: it was sent, or the values of the version that it was made from
 * are there.
 */
function hasOrigin(
  { version, since }: Fragment,
  { base, form }: Contribution,
  { lateVersions }: DilocoSettings,
): boolean {
  if (form === "displacement" || base === version) return true;
  return base >= since && version - base <= lateVersions;
}

/** Returns the weight of a contribution that is so many versions behind. */
function lateWeight(
  weight: number,
  behind: number,
  { lateDecay, lateDivisor }: DilocoSettings,
): number {
  if (behind === 0) return weight;
  const divisor = 1 + lateDecay * behind;
  return weight / (lateDivisor === "root" ? Math.sqrt(divisor) : divisor);
}

/** @throws BUSY, as a contribution that is dropped, if there is no room to keep it. */
function checkRoom(
  { open }: FragmentTable,
  trainer: string,
  parts: readonly Uint8Array[],
  limits: KeptLimits,
): void {
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  try {
    open.checkRoom(trainer, bytes, limits);
  } catch (cause) {
    const { code, message } = ensureError(cause);
    throw new DroppedContribution(code, message, {}, { cause });
  }
}

const NO_BYTES = new Uint8Array(0);

/** All parts of a contribution: those that were kept, and the one that completes them, whose runs are checked. */
interface Whole {
  readonly context: RecordContext;
  readonly header: RecordHeader;
  readonly message: Message;
  /** Number of the completing part. */
  readonly own: number;
  readonly runs: readonly RunChange[];
  readonly earlier: readonly { readonly part: number; readonly message: Message }[];
}

/**
 * Calls `visit` with the runs of each part, in the order of their numbers. Parts are decoded one at a time, so that a
 * contribution of many takes no more memory than its largest part.
 */
function eachPart(
  { context, header, message, own, runs, earlier }: Whole,
  visit: (runs: readonly RunChange[]) => void,
): void {
  if (earlier.length === 0) {
    visit(runs);
    return;
  }
  const parts = [...earlier, { part: own, message }].sort(byPart);
  for (const part of parts) visit(checkPart(context, header, part.message));
}

function byPart(a: { readonly part: number }, b: { readonly part: number }): number {
  return a.part - b.part;
}

/**
 * Checks a part by itself as a batch of gradients.
 * @throws what `checkBatch` throws; BAD_VALUE unless all entries are displacements of whole blocks.
 */
function checkPart(context: RecordContext, header: RecordHeader, message: Message): RunChange[] {
  const runs = checkBatch(context, header, message);
  for (const { sent } of runs) {
    const { operation, parts, norms, seen } = sent;
    const isPlain = operation?.op === "grad" && operation.lr === undefined && parts === undefined;
    if (isPlain && norms === undefined && seen === undefined) continue;
    throw new PserverError(
      "BAD_VALUE",
      "runs: expected gradients of whole blocks without a learning rate, norms and versions; received others",
    );
  }
  return runs;
}

/**
 * Passes if the parts have every block of the fragment once; returns the norm of each tensor. Changes nothing. `version`:
 * that of the fragment; undefined for a contribution that does not count, of which no norms are wanted.
 * @throws NOT_INITIALIZED, BAD_INDEX, BAD_LENGTH
 */
function checkWhole(
  fold: FragmentFold,
  whole: Whole,
  contribution: Contribution,
  version: number | undefined,
): Map<string, number> {
  const { fragment } = contribution;
  const expected = [...blocksOf(fold, fragment)].flat();
  const received = new Set<BlockActor>();
  const squares = new Map<string, number>();
  eachPart(whole, (runs) => {
    for (const { blocks } of runs) {
      for (const block of blocks) {
        if (received.has(block)) {
          const text = `${block.label}: expected each block once in a contribution; received it again`;
          throw new PserverError("BAD_INDEX", text);
        }
        received.add(block);
      }
    }
    if (version !== undefined) addSquares(fold.memory, runs, contribution, version, squares);
  });
  if (received.size !== expected.length) {
    throw new PserverError(
      "BAD_LENGTH",
      `expected all ${expected.length} blocks of fragment ${quoteName(fragment)}; received ${received.size}`,
    );
  }
  return new Map([...squares].map(([parameter, sum]) => [parameter, Math.sqrt(sum)]));
}

/**
 * Returns the blocks of a fragment, by parameter in the order of the names.
 * @throws NOT_INITIALIZED if one has no values yet.
 */
function blocksOf({ declarations, blocks }: FragmentFold, fragment: string): BlockActor[][] {
  return declarations.ofFragment(fragment).map(({ name, firstNumber, layout }) =>
    Array.from({ length: layout.blocks }, (_, index) => {
      const block = blocks.ofNumber(firstNumber + index);
      if (block !== undefined) return block;
      const text = `${quoteName(name)} block ${index}: expected an init before; found none`;
      throw new PserverError("NOT_INITIALIZED", text);
    }),
  );
}

/**
 * Returns why a contribution does not count in the open round, whatever is in it; undefined if it does. LATE for a second
 * one from a version, and for one that is behind where such do not count; NOT_SAMPLED if others were drawn for its round;
 * BUSY if the round has as many as it may.
 */
function staleness(
  { fragments, steps }: FragmentFold,
  fragment: Fragment,
  trainer: string,
  contribution: Contribution,
  settings: DilocoSettings,
): DroppedContribution | undefined {
  const { name, version, bases, round } = fragment;
  const { base } = contribution;
  const last = bases.get(trainer);
  const isRepeated = round.some((taken) => taken.trainer === trainer && taken.base === base);
  if (isRepeated || (last !== undefined && base <= last)) {
    return new DroppedContribution(
      "LATE",
      `base: expected a version of fragment ${quoteName(name)} above ${Math.max(last ?? 0, base)}, from which the trainer ` +
        `has contributed; received ${base}`,
    );
  }
  const { late, lateVersions } = settings;
  if (base < version && (late === "drop" || !hasOrigin(fragment, contribution, settings))) {
    const oldest = late === "rebase" ? ` or up to ${lateVersions} before` : "";
    return new DroppedContribution(
      "LATE",
      `base: expected version ${version} of fragment ${quoteName(name)}${oldest}; received ${base}`,
    );
  }
  const sample = fragments.samples.of(name, base + 1, steps);
  if (sample?.has(trainer) === false) {
    const text = `expected one of the ${sample.size} trainers drawn for round ${base + 1} of fragment ${quoteName(name)}`;
    return new DroppedContribution("NOT_SAMPLED", `${text}; received ${quoteName(trainer)}`);
  }
  if (round.length < MEMBERS_MAX) return undefined;
  const text = `expected at most ${MEMBERS_MAX} contributions in a round of fragment ${quoteName(name)}`;
  return new DroppedContribution("BUSY", text);
}

/**
 * Passes if the norms of a contribution's tensors are finite, unless their parameters allow others, and if the guards let
 * it count; returns them as they count. A contribution that is set aside is rejected as well, because its trainer must not
 * wait for a round with it.
 * @throws NON_FINITE; GUARDED as a {@link GuardRejection}.
 */
function checkNorms(
  { blocks }: FragmentFold,
  context: RecordContext,
  measured: ReadonlyMap<string, number>,
): TensorNorms {
  const norms = new Map<string, number>();
  const clips = new Map<string, number>();
  for (const [parameter, norm] of measured) {
    const block = blocks.get(parameter, 0);
    if (!Number.isFinite(norm) && block?.config.allowNonFinite !== true) {
      const text = `${quoteName(parameter)}: expected a finite norm; received ${norm}`;
      throw new DroppedContribution("NON_FINITE", text);
    }
    const clip = block === undefined ? 1 : judgeNorm(context, block, norm, "tensor");
    norms.set(parameter, norm * clip);
    if (clip !== 1) clips.set(parameter, clip);
  }
  const verdict = verdictOf(context.judged);
  if (verdict !== undefined && verdict.action !== "clip") throw new GuardRejection(verdict);
  return { norms, clips };
}

/** Adds a contribution that passed every check to the open round. */
function addToRound(
  fold: FragmentFold,
  fragment: Fragment,
  whole: Whole,
  contribution: Contribution,
  own: {
    readonly weight: number;
    readonly tensors: TensorNorms;
    readonly seq: number;
    readonly kept: readonly Uint8Array[];
  },
): void {
  const { base, steps, tokens } = contribution;
  const { trainer } = whole.context;
  const total = fragment.weight + own.weight;
  const shares = { before: fragment.weight / total, own: own.weight / total };
  const { version } = fragment;
  eachPart(whole, (runs) => addToMeans(fold, runs, contribution, version, shares, own.tensors));
  for (const [parameter, norm] of own.tensors.norms) {
    const before = fragment.norms.get(parameter) ?? 0;
    fragment.norms.set(parameter, before * shares.before + norm * shares.own);
  }
  fragment.weight = total;
  fragment.bases.set(trainer, base);
  const { seq, weight, kept } = own;
  const clips = kept.length === 0 ? [] : [...own.tensors.clips];
  fragment.round.push({ trainer, seq, base, steps, tokens, weight, kept, clips });
}

/**
 * Returns what a contribution weighs before it is late.
 * @throws BAD_VALUE for one without the steps or tokens that weights are made of.
 */
function weightOf({ weights }: DilocoSettings, { steps, tokens }: Contribution): number {
  if (weights === "uniform") return 1;
  if (steps === 0 && weights !== "tokens") throw noWeight("steps", weights);
  if (weights === "steps") return steps;
  if (tokens === 0) throw noWeight("tokens", weights);
  return weights === "tokens" ? tokens : tokens * (tokens / steps);
}

function noWeight(what: "steps" | "tokens", weights: string): PserverError {
  const text = `${what}: expected at least 1, because contributions weigh ${weights}; received 0`;
  return new PserverError("BAD_VALUE", text);
}

function count(
  { fragments, steps, rules }: FragmentFold,
  trainer: string,
  work: Contribution | RoundContribution,
  fate: "processed" | "merged" | "late" | "dropped",
): void {
  const isNeeded = (id: string): boolean =>
    steps.clockOf(id) !== undefined || fragments.hasOpen(id);
  const limits = { accountsMax: rules.trainersMax, isNeeded };
  if (fate === "dropped" && "id" in work) {
    fragments.ledger.count(trainer, "processed", work, limits);
  }
  fragments.ledger.count(trainer, fate, work, limits);
}

/** A round that a record has closed. */
export interface ClosedRound {
  readonly fragment: string;
  readonly round: number;
  /** The contributions that it merged, in the order of the journal. */
  readonly merged: readonly RoundContribution[];
}

/**
 * Returns the round that a record closes; undefined if it closes none: the round is not the open one, or has fewer
 * contributions than the writer of the record has folded.
 */
export function roundToClose(
  { fragments, declarations }: Pick<FragmentFold, "fragments" | "declarations">,
  { fragment, round, contributions }: CloseRecord,
): ClosedRound | undefined {
  if (declarations.ofFragment(fragment).length === 0) return undefined;
  const { version = 0, round: open = [] } = fragments.get(fragment) ?? {};
  if (version + 1 !== round || open.length < contributions) return undefined;
  return { fragment, round, merged: [...open] };
}

/** Applies the means of a round to the blocks of its fragment, and begins the next round. */
export function closeRound(fold: FragmentFold, { fragment: name, merged }: ClosedRound): void {
  const fragment = fold.fragments.obtain(name);
  // Without contributions a rule would still move the values by its momentum.
  const settings = settingsOf(fold.steps);
  const parameters = merged.length === 0 ? [] : blocksOf(fold, name);
  // One alone is its mean already.
  if (merged.length > 1 && needsContributions(fold, name, settings)) {
    const { batchEntriesMax } = fold.rules;
    const kept = merged.map((own) => new KeptContribution(own, fold.blocks, batchEntriesMax));
    mergeRobustly(fold, parameters, kept, settings, fragment.version);
  }
  // Only now: it takes the place of values that contributions may have been compared with.
  if (settings.lateVersions > 0)
    keepVersion(fold.blocks, presentBlocks(fold, name), fragment.version);
  for (const parameter of parameters) {
    const [block] = parameter;
    if (block === undefined) continue;
    const norm = fragment.norms.get(block.parameter) ?? 0;
    applyMerged(fold, parameter, norm, merged.length);
  }
  for (const contribution of merged) {
    const isLate = contribution.base < fragment.version;
    count(fold, contribution.trainer, contribution, isLate ? "late" : "merged");
  }
  begin(fragment);
  fragment.version += 1;
}

/**
 * Ends the open round of a fragment without a result, because its parameters have changed: its contributions are
 * dropped, also those that are not complete.
 * @returns how many blocks had contributions.
 */
export function discardRound(fold: FragmentFold, name: string): number {
  const { fragments, declarations, blocks } = fold;
  fragments.open.dropOf(name);
  const fragment = fragments.get(name);
  if (fragment === undefined) return 0;
  fragment.since = fragment.version;
  if (declarations.ofFragment(name).length === 0) fragments.delete(name);
  if (fragment.round.length === 0) return 0;
  for (const contribution of fragment.round) {
    count(fold, contribution.trainer, contribution, "dropped");
  }
  begin(fragment);
  return discardSums(blocks, presentBlocks(fold, name));
}

/** Returns the blocks of a fragment that have values. */
function presentBlocks({ blocks }: Pick<FragmentFold, "blocks">, name: string): BlockActor[] {
  return [...blocks.all()].filter(({ config }) => config.fragment === name);
}

function begin(fragment: Fragment): void {
  fragment.round.length = 0;
  fragment.norms.clear();
  fragment.weight = 0;
}

function settingsOf({ synchronization }: StepTable): DilocoSettings {
  if (synchronization.mode === "diloco") return synchronization;
  throw new PserverError(
    "UNSUPPORTED",
    `the trainers of this job do not contribute to fragments: it is ${synchronization.mode}`,
  );
}

function notMember(trainer: string): PserverError {
  return new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} is not a member of the job here: it has to enter before it contributes`,
    { trainer },
  );
}

function unknown({ fragment }: Contribution): PserverError {
  return new PserverError(
    "UNKNOWN_PARAMETER",
    `fragment ${quoteName(fragment)}: expected one of a parameter of this shard`,
  );
}
