import {
  type Declaration,
  type Fields,
  PserverError,
  parseCreateRequest,
  quoteName,
} from "../../protocol/index.ts";
import { announce } from "./announce.ts";
import { requireMemory } from "./block-check.ts";
import { isForsaken } from "./holder.ts";
import { abortForsakenJob, readJob } from "./job-record.ts";
import { isSelected, type Lifecycle, step } from "./machine.ts";
import { changeParameter, requireKnown } from "./parameter-change.ts";
import { type Parameter, redeclare, requireSameDeclaration, standing } from "./parameter-record.ts";
import { beginReply, parameterReply } from "./replies.ts";
import { requireLiveSession } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Selects this session to initialize one parameter, if nobody else does or has, whatever the
 * job's state. Answers with the parameter as it is declared now: by this session if it is
 * selected, else by whoever was first. The rules of taking over are those of `begin`.
 */
export async function create(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { parameter: declaration } = parseCreateRequest(fields);
  const [session] = await Promise.all([
    requireLiveSession(around, trainer, fields),
    around.ledger.look(around),
  ]);
  // Read after the parameter, so that it is never older than what the record says of the job.
  let job: Lifecycle | undefined;
  const parameter = await changeParameter(around, declaration.name, async (known) => {
    job = await readJob(around);
    // Whoever declared it for the job may be gone; without that initialization it is free.
    const isHeld = known !== undefined && isInJob(known, job);
    if (isHeld && (await isForsaken(around, job))) job = await abortForsakenJob(around);
    return await selected(around, { trainer, session }, known, job, declaration);
  });
  const current = job ?? (await readJob(around));
  const { lifecycle } = parameter;
  const isOwn = parameter.jobEpoch === 0 && isSelected(lifecycle, session);
  around.ledger.note(around, [parameter]);
  if (isOwn) await announce(around, trainer, [parameter]);
  return {
    ...beginReply({ ...lifecycle, state: standing(parameter, current) }, isOwn),
    ...parameterReply(parameter, current),
  };
}

/**
 * Applies the abort of one parameter's initialization and gives its lifecycle.
 * @throws UNKNOWN_PARAMETER, and what {@link requireOwn} and `giveUp` throw.
 */
export async function abortParameter(
  around: Surroundings,
  name: string,
  giveUp: (lifecycle: Lifecycle) => Lifecycle,
): Promise<Lifecycle> {
  const parameter = await changeParameter(around, name, (found) => {
    const known = requireOwn(requireKnown(found, name));
    const lifecycle = giveUp(known.lifecycle);
    return lifecycle === known.lifecycle ? known : { ...known, lifecycle };
  });
  return parameter.lifecycle;
}

/**
 * The parameter itself, if it is initialized by itself.
 * @throws NOT_SELECTED if it is part of the job's initialization, which ends as a whole.
 */
export function requireOwn(parameter: Parameter): Parameter {
  if (parameter.jobEpoch === 0) return parameter;
  const { name } = parameter.declaration;
  throw new PserverError(
    "NOT_SELECTED",
    `${quoteName(name)} was declared for the job, in epoch ${parameter.jobEpoch}; ` +
      "it is finished and aborted with the job only",
    { parameter: name, jobEpoch: parameter.jobEpoch },
  );
}

function isInJob(parameter: Parameter, job: Lifecycle): boolean {
  return parameter.jobEpoch !== 0 && standing(parameter, job) === "initializing";
}

async function selected(
  around: Surroundings,
  claimant: { readonly trainer: string; readonly session: number },
  known: Parameter | undefined,
  job: Lifecycle,
  declaration: Declaration,
): Promise<Parameter> {
  const { trainer, session } = claimant;
  let replace = true;
  if (known !== undefined) {
    const state = standing(known, job);
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
      replace = await isForsaken(around, known.lifecycle);
    }
  }
  const fresh = redeclare(around, known, declaration);
  if (known === undefined) await requireMemory(around, [fresh]);
  const lifecycle = step(fresh.lifecycle, { type: "BEGIN", trainer, session, replace });
  if (known !== undefined && lifecycle === known.lifecycle) return known;
  const created = { ...fresh, jobEpoch: 0, lifecycle };
  around.ledger.require(around, trainer, [created]);
  return created;
}

/** Waiting for oneself would never end. */
function ownDeclaration(
  known: Parameter,
  { trainer, session }: { readonly trainer: string; readonly session: number },
): PserverError {
  const { name } = known.declaration;
  return new PserverError(
    "NOT_SELECTED",
    `${quoteName(name)} is declared in the job's initialization by this very trainer ` +
      `${quoteName(trainer)}, session ${session}: finish that instead of creating it`,
    { parameter: name, trainer, session },
  );
}
