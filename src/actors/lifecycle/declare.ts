import {
  type Declaration,
  type Fields,
  PARAMETERS_PER_REQUEST_MAX,
  PserverError,
  parseDeclareRequest,
  quoteName,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { requireMemory } from "./block-check.ts";
import { type Claimant, isAbandoned, requireSelected } from "./claimant.ts";
import type { LifecycleDeps } from "./deps.ts";
import { announceGranted } from "./host-records.ts";
import { jobRecord } from "./lifecycle-record.ts";
import { advance, type Lifecycle, type LifecycleEvent, UNINITIALIZED } from "./machine.ts";
import { infoOf, type Parameter, redeclare, requireSameDeclaration } from "./parameter.ts";
import { changeParameter, parameterRecord } from "./parameter-record.ts";
import { requireSession } from "./sessions.ts";

/**
 * Declares parameters of the job's initialization and replies with their layouts and epochs, in request
 * order. All are checked before any is written, so a refusal changes nothing. The journals are told
 * before the trainer is.
 * @throws QUOTA, and as {@link requireSelected}.
 */
export async function declare(
  deps: LifecycleDeps,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { epoch, parameters } = parseDeclareRequest(fields);
  const [session] = await Promise.all([
    requireSession(deps, trainer, fields),
    deps.ledger.refresh(),
  ]);
  const job = await jobRecord.read(deps);
  const claimant = { trainer, session, epoch };
  requireSelected(job, claimant);
  const event = { type: "BEGIN", trainer, session, replace: true } as const;
  const attempt = { claimant, event, first: advance(UNINITIALIZED, event) };
  const planned = await mapConcurrently(withoutRepeats(parameters), async (declaration) => {
    const known = await presentOf(deps, declaration.name);
    return { declaration, known, after: await declared(deps, attempt, known, declaration) };
  });
  const fresh = planned.filter(({ known }) => known === undefined);
  await requireMemory(
    deps,
    fresh.map(({ after }) => after),
  );
  const after = planned.map((plan) => plan.after);
  deps.ledger.require(trainer, after);
  const written = await mapConcurrently(
    planned,
    ({ declaration, known, after }) => {
      const decide = (found: Parameter | undefined): Parameter | Promise<Parameter> =>
        found === known ? after : declared(deps, attempt, found, declaration);
      return changeParameter(deps, declaration.name, decide, { known });
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
interface Attempt {
  readonly claimant: Claimant;
  readonly event: LifecycleEvent;
  /** The lifecycle that the event gives to a new parameter. */
  readonly first: Lifecycle;
}

/**
 * The parameter as it is, or as it was at an earlier moment if that makes no difference: a name not known here is
 * not looked for, because creating its record fails if there is one after all; and what was declared for the job can
 * only have been declared again in a later epoch, which the job's record would have told.
 */
async function presentOf(deps: LifecycleDeps, name: string): Promise<Parameter | undefined> {
  const known = deps.ledger.catalog.get(name);
  if (known === undefined || known.jobEpoch !== 0) return known;
  return await parameterRecord(name).read(deps);
}

/** The parameter once this attempt has declared it; `known` itself if it has already. */
async function declared(
  deps: LifecycleDeps,
  { claimant, event, first }: Attempt,
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

/** The error if a later initialization, begun after the job was read, has declared this already. */
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
  deps: LifecycleDeps,
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
