import type { Cut } from "../points/point.ts";

/** Whether the model at a cut is as it should be; `skip` if that cannot be told. */
export type Verdict = "good" | "bad" | "skip";

/** Judges the model at a cut; `leftRecords` are still in question. */
export type Judge = (cut: Cut, leftRecords: number) => Promise<Verdict>;
