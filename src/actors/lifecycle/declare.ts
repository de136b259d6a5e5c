import {
  type Declaration,
  type Fields,
  PserverError,
  parseDeclareRequest,
  quoteName,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { announce } from "./announce.ts";
import { requireMemory } from "./block-check.ts";
import { type Claimant, isForsaken, requireSelected } from "./holder.ts";
import { readJob } from "./job-record.ts";
import { parameterKey } from "./keys.ts";
import { step } from "./machine.ts";
import { changeParameter } from "./parameter-change.ts";
import {
  type Parameter,
  parseParameterRecord,
  redeclare,
  requireSameDeclaration,
} from "./parameter-record.ts";
import { infoOf } from "./replies.ts";
import { requireSession } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Declares parameters of the job's initialization and gives their layouts and epochs, in request
 * order. All are looked at before any is written, so a refusal changes nothing. The journals are told
 * before the trainer is.
 * @throws QUOTA, and what the claim is refused with.
 */
export async function declare(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { epoch, parameters } = parseDeclareRequest(fields);
  const [session] = await Promise.all([
    requireSession(around, trainer, fields),
    around.ledger.look(around),
  ]);
  const claimant = { trainer, session, epoch };
  const job = await readJob(around);
  requireSelected(job, claimant);
  const planned = await mapConcurrently(withoutRepeats(parameters), async (declaration) => {
    const { name } = declaration;
    const record = await around.records.read(parameterKey(name));
    const parameter = parseParameterRecord(record, name);
    const after = await declared(around, claimant, parameter, declaration);
    return { declaration, record, after };
  });
  const fresh = planned.filter(({ record }) => record === undefined);
  await requireMemory(
    around,
    fresh.map(({ after }) => after),
  );
  around.ledger.require(
    around,
    trainer,
    planned.map(({ after }) => after),
  );
  const written = await mapConcurrently(planned, ({ declaration, record }) =>
    changeParameter(
      around,
      declaration.name,
      (known) => declared(around, claimant, known, declaration),
      { record },
    ),
  );
  around.ledger.note(around, written);
  await announce(around, trainer, written);
  const byName = new Map(written.map((entry) => [entry.declaration.name, infoOf(entry, job)]));
  return { parameters: parameters.map(({ name }) => byName.get(name)) };
}

/** The parameter once this attempt has declared it: `known` itself if it has already. */
async function declared(
  around: Surroundings,
  claimant: Claimant,
  known: Parameter | undefined,
  declaration: Declaration,
): Promise<Parameter> {
  const { trainer, session, epoch } = claimant;
  if (known !== undefined) {
    if (known.jobEpoch > epoch) throw overtaken(known, claimant);
    requireUnready(known, claimant);
    if (known.jobEpoch === epoch) {
      requireSameDeclaration(known.declaration, declaration);
      return known;
    }
    await requireNotCreated(around, known, claimant);
  }
  const fresh = redeclare(around, known, declaration);
  const lifecycle = step(fresh.lifecycle, { type: "BEGIN", trainer, session, replace: true });
  return { ...fresh, jobEpoch: epoch, lifecycle };
}

/** Another initialization began after the job was read, and has declared this already. */
function overtaken(known: Parameter, { trainer, epoch }: Claimant): PserverError {
  const { name } = known.declaration;
  return new PserverError(
    "STALE_EPOCH",
    `${quoteName(name)} is declared in epoch ${known.jobEpoch} of the job; ` +
      `received a declaration by trainer ${quoteName(trainer)} in epoch ${epoch}`,
    { parameter: name, trainer, expected: known.jobEpoch, received: epoch },
  );
}

function requireUnready(known: Parameter, claimant: Claimant): void {
  if (known.lifecycle.state !== "ready") return;
  requireSelected(known.lifecycle, claimant, known.declaration.name);
}

/** Passes unless somebody who may be alive is creating the parameter by itself. */
async function requireNotCreated(
  around: Surroundings,
  known: Parameter,
  claimant: Claimant,
): Promise<void> {
  const { lifecycle, jobEpoch, declaration } = known;
  if (jobEpoch !== 0 || lifecycle.state !== "initializing") return;
  const { trainer, session } = lifecycle.context;
  if (await isForsaken(around, lifecycle)) return;
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
