/**
 * A step of a training loop: gradients for all parameters, or for some rows of one, and then the pull of
 * the same elements. All elements are float32.
 */
export type TrainingStep = DenseStep | RowStep;

/** Gradients of whole parameters of one shape. */
export interface DenseStep {
  readonly kind: "dense";
  readonly name: string;
  readonly parameters: number;
  /** Number of elements of each parameter. */
  readonly elements: number;
}

/** A gradient of some rows of one table, other rows at each step. */
export interface RowStep {
  readonly kind: "rows";
  readonly name: string;
  readonly tableRows: number;
  readonly rowElements: number;
  /** Rows of one step, each once. */
  readonly rows: number;
}

const ELEMENT_BYTES = 4;

/** The steps by which parameter servers are compared, large tensors last. */
export const TRAINING_STEPS: readonly TrainingStep[] = [
  {
    kind: "rows",
    name: "4,096 rows of 1,000,000 × 64",
    tableRows: 1_000_000,
    rowElements: 64,
    rows: 4_096,
  },
  { kind: "dense", name: "16 × 64 KiB", parameters: 16, elements: 16 * 1_024 },
  // These three show that what a tensor costs does not depend on how many there are.
  { kind: "dense", name: "100 × 64 bytes", parameters: 100, elements: 16 },
  { kind: "dense", name: "1,000 × 64 bytes", parameters: 1_000, elements: 16 },
  { kind: "dense", name: "10,000 × 64 bytes", parameters: 10_000, elements: 16 },
  { kind: "dense", name: "40 × 1 MiB", parameters: 40, elements: 256 * 1_024 },
];

/** Returns the bytes of elements that a step moves, both ways together. */
export function stepBytes(step: TrainingStep): number {
  const elements =
    step.kind === "dense" ? step.parameters * step.elements : step.rows * step.rowElements;
  return 2 * elements * ELEMENT_BYTES;
}
