import type { ParameterInfo, StatusReply, StatusRequest } from "./lifecycle-messages.ts";
import { PARAMETERS_PER_REQUEST_MAX } from "./limits.ts";
import { laterPosition, type Position } from "./position.ts";

/**
 * Every parameter of a job, ready or not, in the order of names, and the job's state: asks for one
 * page after the other. The positions are the latest of all pages, because each page covers only
 * its own parameters; everything else is from the last page.
 * @throws what `ask` throws.
 */
export async function readStatusPages(
  ask: (request: StatusRequest) => Promise<StatusReply>,
): Promise<{ status: StatusReply; parameters: ParameterInfo[] }> {
  const parameters: ParameterInfo[] = [];
  let at: readonly Position[] = [];
  for (;;) {
    const after = parameters.at(-1)?.name;
    const limit = PARAMETERS_PER_REQUEST_MAX;
    const status = await ask(after === undefined ? { limit } : { limit, after });
    const page = status.parameters.filter((info) => info !== null);
    parameters.push(...page);
    const earlier = at;
    if (status.at.length > 0) at = status.at.map((own, i) => laterPosition(earlier[i], own));
    if (!status.more || page.length === 0) return { status: { ...status, at }, parameters };
  }
}
