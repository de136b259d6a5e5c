/** A broken promise of the system, found by an oracle. */
class Violation extends Error {
  override readonly name: string = "Violation";
}

/** Throws a {@link Violation} unless the promise holds. */
export function promise(holds: boolean, broken: () => string): asserts holds {
  if (!holds) throw new Violation(broken());
}
