import type { JobView } from "./job.ts";

/** A view of a job, shown in a tab. */
export interface View {
  /** The element that shows it. */
  readonly element: HTMLElement;
  /** Called when something is new. */
  update(job: JobView): void;
}
