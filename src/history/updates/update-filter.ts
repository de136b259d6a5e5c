import type { UpdateEvent } from "../../actors/updates/update-event.ts";

/** Which updates are wanted; what is undefined admits all. */
export interface UpdateFilter {
  /** Updates of this parameter only. */
  readonly parameter?: string | undefined;
  /** Updates and notes of this trainer only. */
  readonly trainer?: string | undefined;
}

/** Whether an update is wanted. */
export function admits({ parameter, trainer }: UpdateFilter, event: UpdateEvent): boolean {
  if (parameter !== undefined && event.block?.parameter !== parameter) return false;
  return trainer === undefined || event.trainer === trainer;
}
