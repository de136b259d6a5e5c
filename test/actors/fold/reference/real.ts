/** How exactly a kind of floating-point number is computed with. */
export interface Precision {
  /** The most that one operation is wrong by, relative to its result. */
  readonly roundoff: number;
  /** The distance of the numbers next to zero. */
  readonly underflow: number;
  /** The least number that is not denormal: what is smaller may count as zero. */
  readonly leastNormal: number;
}

// Rounding to nearest is wrong by at most half a unit in the last place: 2^-24 of the result in float32,
// 2^-53 in float64. Twice that is allowed, because an implementation may make two operations of one
// (multiply by a reciprocal) or group them in another way. 2^-53 more is what the reference itself is
// wrong by, which computes in float64.
const REFERENCE_ROUNDOFF = 2 ** -53;

/** The precisions of the element types. */
export const PRECISIONS = {
  float32: {
    roundoff: 2 ** -23 + REFERENCE_ROUNDOFF,
    underflow: 2 ** -149,
    leastNormal: 2 ** -126,
  },
  float64: {
    roundoff: 2 ** -52 + REFERENCE_ROUNDOFF,
    underflow: 2 ** -1074,
    leastNormal: 2 ** -1022,
  },
} as const satisfies Record<string, Precision>;

/** What a power of a library is wrong by: at most two units in the last place of float64. */
const POWER_ROUNDOFF = 2 ** -51;

/**
 * A number of the reference: its value in float64, and how far from it a correct implementation of
 * the same formula in `precision` can be.
 *
 * The bound is carried along by running error analysis (Higham, "Accuracy and Stability of Numerical
 * Algorithms", 2002, section 3.3): each operation passes on the errors of its operands and adds its
 * own rounding of at most roundoff · |result| + underflow. Where a product or a factor of it may be
 * denormal, the product may also be taken as zero, as the kernels do. No overflow is considered.
 */
export class Real {
  readonly value: number;
  readonly error: number;
  readonly precision: Precision;

  constructor(value: number, error: number, precision: Precision) {
    this.value = value;
    this.error = error;
    this.precision = precision;
  }

  /** A number that the implementation holds exactly. */
  static exact(value: number, precision: Precision): Real {
    return new Real(value, 0, precision);
  }

  /** This number, rounded once to another precision. */
  in(precision: Precision): Real {
    return rounded(this.value, this.error, precision);
  }

  plus(other: Real): Real {
    return rounded(this.value + other.value, this.error + other.error, this.precision);
  }

  minus(other: Real): Real {
    return rounded(this.value - other.value, this.error + other.error, this.precision);
  }

  times(other: Real): Real {
    const fromThis = this.error * (Math.abs(other.value) + other.error);
    const fromOther = other.error * Math.abs(this.value);
    const product = rounded(this.value * other.value, fromThis + fromOther, this.precision);
    const least = this.precision.leastNormal;
    return product.orZeroIf(this.maybeBelow(least) || other.maybeBelow(least)).orZeroBelow(least);
  }

  over(other: Real): Real {
    const quotient = this.value / other.value;
    const divisorMin = Math.abs(other.value) - other.error;
    const error =
      divisorMin > 0
        ? (this.error + Math.abs(quotient) * other.error) / divisorMin
        : Number.POSITIVE_INFINITY;
    const { leastNormal } = this.precision;
    return rounded(quotient, error, this.precision).orZeroBelow(leastNormal);
  }

  /** The square root of a number that is not negative. */
  root(): Real {
    const root = Math.sqrt(this.value);
    const low = Math.sqrt(Math.max(this.value - this.error, 0));
    const high = Math.sqrt(this.value + this.error);
    return rounded(root, Math.max(root - low, high - root), this.precision);
  }

  squared(): Real {
    return this.times(this);
  }

  negated(): Real {
    return new Real(-this.value, this.error, this.precision);
  }

  /** To a whole power; only of numbers that are exact. */
  toThe(exponent: number): Real {
    const value = this.value ** exponent;
    return new Real(value, POWER_ROUNDOFF * Math.abs(value), this.precision);
  }

  /** This number, which an implementation may take as zero if it is nearer to it than `limit`. */
  orZeroBelow(limit: number): Real {
    return this.orZeroIf(this.maybeBelow(limit));
  }

  /** This number, which an implementation may take as zero if `condition` holds. */
  orZeroIf(condition: boolean): Real {
    if (!condition || this.error >= Math.abs(this.value)) return this;
    return new Real(this.value, Math.abs(this.value), this.precision);
  }

  /** This number, which is not negative; an implementation may take it as `limit` if it is less. */
  orRaisedTo(limit: number): Real {
    const raise = Math.max(limit - (this.value - this.error), 0);
    return new Real(this.value, Math.max(this.error, raise), this.precision);
  }

  /** Whether the implementation's number may be nearer to zero than `limit`. */
  maybeBelow(limit: number): boolean {
    return Math.abs(this.value) - this.error < limit;
  }

  /** The larger of two; `other` counts only if it is a number. */
  max(other: Real): Real {
    const error = Math.max(this.error, other.error);
    const value = Number.isNaN(other.value) ? this.value : Math.max(this.value, other.value);
    return new Real(value, error, this.precision);
  }

  /** Cut to ±`limit`. */
  clipped(limit: Real): Real {
    const value = Math.min(Math.max(this.value, -limit.value), limit.value);
    return new Real(value, Math.max(this.error, limit.error), this.precision);
  }

  /** Moved toward zero by `distance`, but not past it: sign(x) · max(|x| − distance, 0). */
  shrunk(distance: Real): Real {
    const value = Math.sign(this.value) * Math.max(Math.abs(this.value) - distance.value, 0);
    return rounded(value, this.error + distance.error, this.precision);
  }
}

function rounded(value: number, error: number, precision: Precision): Real {
  const own = precision.roundoff * (Math.abs(value) + error) + precision.underflow;
  return new Real(value, error + own, precision);
}
