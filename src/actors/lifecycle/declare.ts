import {
  BATCH_BYTES,
  BATCH_ENTRY_BYTES_MAX,
  type Declaration,
  DTYPES,
  type Fields,
  type Layout,
  PARAMETERS_PER_REQUEST_MAX,
  PserverError,
  parseCreateRequest,
  parseDeclareRequest,
  quoteName,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { withNumbers } from "./block-numbers.ts";
import type { Counter } from "./counter.ts";
import { announceGranted } from "./declared-ledger.ts";
import {
  abortAbandonedJob,
  type Claimant,
  type InitializationDeps,
  isAbandoned,
  requireMemory,
  requireSelected,
} from "./initialization.ts";
import {
  advance,
  beginReply,
  isSelected,
  jobEntry,
  type Lifecycle,
  type LifecycleEvent,
  UNINITIALIZED,
} from "./machine.ts";
import {
  changeParameter,
  effectiveState,
  infoOf,
  type Parameter,
  parameterEntry,
  parameterReply,
  redeclare,
  requireSameDeclaration,
  withGuard,
} from "./parameter.ts";
import { requireLiveSession, requireSession } from "./sessions.ts";

/** Dependencies of declarations. */
export interface DeclareDeps extends InitializationDeps {
  /** Counter of the numbers of blocks. */
  readonly numbers: Counter;
  readonly smallParameters: SmallParameters;
}

/**
 * Declares parameters of the job's initialization and replies with their layouts and epochs, in request
 * order. All are checked before any is written, so a refusal changes nothing. The journals are told
 * before the trainer is.
 * @throws QUOTA, NO_SPACE if the broker cannot reserve what they take, and as {@link requireSelected}.
 */
export async function declare(deps: DeclareDeps, trainer: string, fields: Fields): Promise<Fields> {
  const { epoch, parameters: asked } = parseDeclareRequest(fields);
  const parameters = asked.map((declaration) => withGuard(deps.job, declaration));
  const [session] = await Promise.all([
    requireSession(deps, trainer, fields),
    deps.ledger.refresh(),
  ]);
  const job = await jobEntry.read(deps);
  const claimant = { trainer, session, epoch };
  requireSelected(job, claimant);
  const event = { type: "BEGIN", trainer, session, replace: true } as const;
  const attempt = { claimant, event, first: advance(UNINITIALIZED, event) };
  const planned = await mapConcurrently(withoutRepeats(parameters), async (declaration) => {
    const known = await knownParameter(deps, declaration.name);
    return { declaration, known, after: await declared(deps, attempt, known, declaration) };
  });
  const fresh = planned.filter(({ known }) => known === undefined);
  await requireMemory(
    deps,
    fresh.map(({ after }) => after),
  );
  const after = planned.map((plan) => plan.after);
  await deps.owners.reserveSpace(deps.ledger.require(trainer, after));
  const written = await mapConcurrently(
    planned,
    async ({ declaration, known, after }) => {
      const numbered = await withNumbers(deps, after);
      const decide = async (found: Parameter | undefined): Promise<Parameter> =>
        found === known
          ? numbered
          : await withNumbers(deps, await declared(deps, attempt, found, declaration));
      return await changeParameter(deps, declaration.name, decide, { known });
    },
    // All writes of a request are under way together.
    PARAMETERS_PER_REQUEST_MAX,
  );
  deps.ledger.catalog.note(written);
  await announceGranted(deps, trainer, written);
  const byName = new Map(written.map((entry) => [entry.declaration.name, infoOf(entry, job)]));
  return { parameters: parameters.map(({ name }) => byName.get(name)) };
}

/** One attempt to declare, by the session that the job's initialization has selected. */
interface DeclareAttempt {
  readonly claimant: Claimant;
  readonly event: LifecycleEvent;
  /** The lifecycle that the event gives to a new parameter. */
  readonly first: Lifecycle;
}

/**
 * Returns the parameter as it is, or as it was known last if that makes no difference. A name that is not known here
 * is not looked up, because creating its entry fails if there is one after all. What was declared for the job can
 * only have been declared again in a later epoch, which the job's entry would have told.
 */
async function knownParameter(deps: DeclareDeps, name: string): Promise<Parameter | undefined> {
  const known = deps.ledger.catalog.get(name);
  if (known === undefined || known.jobEpoch !== 0) return known;
  return await parameterEntry(name).read(deps);
}

/** Returns the parameter once this attempt has declared it; `known` itself if it was declared before. */
async function declared(
  deps: DeclareDeps,
  { claimant, event, first }: DeclareAttempt,
  known: Parameter | undefined,
  declaration: Declaration,
): Promise<Parameter> {
  const { epoch } = claimant;
  if (known !== undefined) {
    if (known.jobEpoch > epoch) throw staleEpoch(known, claimant);
    if (known.lifecycle.state === "ready") {
      requireSelected(known.lifecycle, claimant, declaration.name);
    }
    if (known.jobEpoch === epoch) {
      requireSameDeclaration(known.declaration, declaration);
      return known;
    }
    await requireNotCreated(deps, known, claimant);
  }
  const fresh = redeclare(deps, known, declaration, (hashed) =>
    deps.smallParameters.place(hashed, declaration, claimant),
  );
  const isNew = fresh.lifecycle === UNINITIALIZED;
  const lifecycle = isNew ? first : advance(fresh.lifecycle, event);
  return { ...fresh, jobEpoch: epoch, lifecycle };
}

/**
 * Makes the error for a parameter that a later initialization, begun after the job was read, has declared already.
 */
function staleEpoch(known: Parameter, { trainer, epoch }: Claimant): PserverError {
  const { name } = known.declaration;
  return new PserverError(
    "STALE_EPOCH",
    `${quoteName(name)} is declared in epoch ${known.jobEpoch} of the job; ` +
      `received a declaration by trainer ${quoteName(trainer)} in epoch ${epoch}`,
    { parameter: name, trainer, expected: known.jobEpoch, received: epoch },
  );
}

/** Checks that no live session is creating the parameter by itself. @throws NOT_SELECTED */
async function requireNotCreated(
  deps: DeclareDeps,
  known: Parameter,
  claimant: Claimant,
): Promise<void> {
  const { lifecycle, jobEpoch, declaration } = known;
  if (jobEpoch !== 0 || lifecycle.state !== "initializing") return;
  const { trainer, session } = lifecycle.context;
  if (await isAbandoned(deps, lifecycle)) return;
  throw new PserverError(
    "NOT_SELECTED",
    `${quoteName(declaration.name)} is being created by trainer ${quoteName(trainer)}, ` +
      `session ${session}; received a declaration by trainer ${quoteName(claimant.trainer)}, ` +
      `session ${claimant.session}`,
    { parameter: declaration.name, expected: { trainer, session }, received: claimant },
  );
}

function withoutRepeats(declarations: readonly Declaration[]): Declaration[] {
  const byName = new Map<string, Declaration>();
  for (const declaration of declarations) {
    const earlier = byName.get(declaration.name);
    if (earlier !== undefined) requireSameDeclaration(earlier, declaration);
    byName.set(declaration.name, declaration);
  }
  return [...byName.values()];
}

/**
 * Selects this session to initialize one parameter, whatever the job's state, unless another session initializes it
 * or has. Replies with the parameter as it is declared now: by this session if it is selected, else by the session
 * that was first. It can be taken over as in `begin`.
 */
export async function create(deps: DeclareDeps, trainer: string, fields: Fields): Promise<Fields> {
  const declaration = withGuard(deps.job, parseCreateRequest(fields).parameter);
  const [session] = await Promise.all([
    requireLiveSession(deps, trainer, fields),
    deps.ledger.refresh(),
  ]);
  // Read after the parameter, so that it is not older than the `jobEpoch` in the parameter's entry.
  let job: Lifecycle | undefined;
  const parameter = await changeParameter(deps, declaration.name, async (known) => {
    job = await jobEntry.read(deps);
    // The session that declared it for the job may be gone. Once that initialization is aborted, the parameter is
    // free.
    const isHeld = known !== undefined && isInJob(known, job);
    if (isHeld && (await isAbandoned(deps, job))) job = await abortAbandonedJob(deps);
    return await select(deps, { trainer, session }, known, job, declaration);
  });
  const current = job ?? (await jobEntry.read(deps));
  const { lifecycle } = parameter;
  const isOwn = parameter.jobEpoch === 0 && isSelected(lifecycle, session);
  deps.ledger.catalog.note([parameter]);
  if (isOwn) await announceGranted(deps, trainer, [parameter]);
  return {
    ...beginReply({ ...lifecycle, state: effectiveState(parameter, current) }, isOwn),
    ...parameterReply(parameter, current),
  };
}

function isInJob(parameter: Parameter, job: Lifecycle): boolean {
  return parameter.jobEpoch !== 0 && effectiveState(parameter, job) === "initializing";
}

/** Returns the parameter once this attempt has selected the claimant; `known` itself if it changes nothing. */
async function select(
  deps: DeclareDeps,
  claimant: { readonly trainer: string; readonly session: number },
  known: Parameter | undefined,
  job: Lifecycle,
  declaration: Declaration,
): Promise<Parameter> {
  const { trainer, session } = claimant;
  let replace = true;
  if (known !== undefined) {
    const state = effectiveState(known, job);
    if (state === "ready") return known;
    if (isInJob(known, job)) {
      if (isSelected(job, session)) throw ownDeclaration(known, claimant);
      return known;
    }
    if (state === "initializing") {
      if (isSelected(known.lifecycle, session)) {
        requireSameDeclaration(known.declaration, declaration);
        return known;
      }
      replace = await isAbandoned(deps, known.lifecycle);
    }
  }
  const fresh = redeclare(deps, known, declaration);
  if (known === undefined) await requireMemory(deps, [fresh]);
  const lifecycle = advance(fresh.lifecycle, { type: "BEGIN", trainer, session, replace });
  if (known !== undefined && lifecycle === known.lifecycle) return known;
  const created = { ...fresh, jobEpoch: 0, lifecycle };
  await deps.owners.reserveSpace(deps.ledger.require(trainer, [created]));
  return await withNumbers(deps, created);
}

/** Makes the error for a trainer that would wait for its own declaration, for ever. */
function ownDeclaration(
  known: Parameter,
  { trainer, session }: { readonly trainer: string; readonly session: number },
): PserverError {
  const { name } = known.declaration;
  return new PserverError(
    "NOT_SELECTED",
    `${quoteName(name)} is declared in the job's initialization by this same trainer ` +
      `${quoteName(trainer)}, session ${session}: finish the job instead of creating it`,
    { parameter: name, trainer, session },
  );
}

/**
 * The most parameters that are placed on one shard in a row, so that the smallest ones of a large model still spread
 * over all shards.
 */
const PARAMETERS_TOGETHER_MAX = 1_024;

/** An initialization of the job, by which parameters are declared. */
export interface Initialization {
  readonly session: number;
  readonly epoch: number;
}

/**
 * The shard on which the next small parameters of an initialization are placed, and the room that is left for them.
 */
interface FillingShard extends Initialization {
  readonly shard: number;
  readonly bytesLeft: number;
  readonly parametersLeft: number;
}

/**
 * Places the small parameters that one initialization declares one after the other on one shard until they fill a
 * batch, then on the next shard: so a training step costs a record for each MiB and not for each parameter. The first
 * shard is that of the first name's hash. Only this host knows what it placed last: parameters declared through
 * several hosts fill several shards at a time.
 */
export class SmallParameters {
  /** Number of shards of the job. */
  readonly #shards: number;
  #filling: FillingShard | undefined;

  constructor(shards: number) {
    this.#shards = shards;
  }

  /**
   * Returns the layout of a new parameter, on the shard where it belongs. `layout` lies on the shard of the name's
   * hash.
   */
  place(layout: Layout, declaration: Declaration, { session, epoch }: Initialization): Layout {
    const bytes = layout.elements * DTYPES[declaration.dtype].bytes;
    const isSmall = layout.blocks === 1 && bytes < BATCH_ENTRY_BYTES_MAX;
    if (!isSmall || layout.pinned === true) return layout;
    const { shard, bytesLeft, parametersLeft } = this.#fillingFor(bytes, layout.firstShard, {
      session,
      epoch,
    });
    this.#filling = {
      ...{ session, epoch, shard },
      bytesLeft: bytesLeft - bytes,
      parametersLeft: parametersLeft - 1,
    };
    return { ...layout, firstShard: shard };
  }

  #fillingFor(bytes: number, hashed: number, { session, epoch }: Initialization): FillingShard {
    const last = this.#filling;
    const isSame = last?.session === session && last.epoch === epoch;
    if (isSame && last.bytesLeft >= bytes && last.parametersLeft > 0) return last;
    const shard = isSame ? (last.shard + 1) % this.#shards : hashed;
    return {
      session,
      epoch,
      shard,
      bytesLeft: BATCH_BYTES,
      parametersLeft: PARAMETERS_TOGETHER_MAX,
    };
  }
}
