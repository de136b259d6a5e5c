import {
  type Declaration,
  type Fields,
  PserverError,
  parseCreateRequest,
  quoteName,
} from "../../protocol/index.ts";
import { requireMemory } from "./block-check.ts";
import { abortAbandonedJob, isAbandoned } from "./claimant.ts";
import type { LifecycleDeps } from "./deps.ts";
import { announceGranted } from "./host-records.ts";
import { beginReply, jobRecord } from "./lifecycle-record.ts";
import { advance, isSelected, type Lifecycle } from "./machine.ts";
import {
  effectiveState,
  type Parameter,
  parameterReply,
  redeclare,
  requireSameDeclaration,
} from "./parameter.ts";
import { changeParameter } from "./parameter-record.ts";
import { requireLiveSession } from "./sessions.ts";

/**
 * Selects this session to initialize one parameter, if nobody else does or has, whatever the
 * job's state. Replies with the parameter as it is declared now: by this session if it is
 * selected, else by the session that was first. It can be taken over as in `begin`.
 */
export async function create(
  deps: LifecycleDeps,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { parameter: declaration } = parseCreateRequest(fields);
  const [session] = await Promise.all([
    requireLiveSession(deps, trainer, fields),
    deps.ledger.refresh(),
  ]);
  // Read after the parameter, so that it is not older than the `jobEpoch` in the parameter's record.
  let job: Lifecycle | undefined;
  const parameter = await changeParameter(deps, declaration.name, async (known) => {
    job = await jobRecord.read(deps);
    // The session that declared it for the job may be gone; without that initialization it is free.
    const isHeld = known !== undefined && isInJob(known, job);
    if (isHeld && (await isAbandoned(deps, job))) job = await abortAbandonedJob(deps);
    return await select(deps, { trainer, session }, known, job, declaration);
  });
  const current = job ?? (await jobRecord.read(deps));
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

/** The parameter once this attempt has selected the claimant; `known` itself if it changes nothing. */
async function select(
  deps: LifecycleDeps,
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
  deps.ledger.require(trainer, [created]);
  return created;
}

/** A trainer that waited for its own declaration would wait for ever. */
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
