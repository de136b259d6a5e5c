import { CURRENT_RULES } from "../fold/rules.ts";
import { parseSettings, SETTINGS_KEY } from "../job/job-settings.ts";
import type { LifecycleDeps } from "./deps.ts";

/**
 * Version of the rules that all journals of the job have by now: an upgrade raises it while hosts run,
 * and notes it in the settings last.
 */
export async function jobRules({ bucket, job }: LifecycleDeps): Promise<number> {
  if (job.rules >= CURRENT_RULES) return job.rules;
  const stored = await bucket.read(SETTINGS_KEY);
  return stored === undefined ? job.rules : parseSettings(stored.value).rules;
}
