/**
 * Chooses `count` different rows of a table of `below`, ascending. The same seed gives the same
 * rows, in every run and on every machine.
 */
export function randomRows(seed: number, count: number, below: number): number[] {
  const rows = new Set<number>();
  let state = seed >>> 0;
  while (rows.size < count) {
    // A linear congruential generator with the constants of Numerical Recipes; its upper bits are good.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    rows.add(Math.floor((state / 2 ** 32) * below));
  }
  return [...rows].sort((a, b) => a - b);
}
