// Statistics of elements in one pass: the sum of squares and the sum in f64, least, largest, zeros, and
// how many are no finite number. All but the last are of the finite elements alone. Sums are made in a
// fixed order: float32 in four lanes, float64 in two, which are added up before the rest that fills no
// vector. They stay in the module's page until the next call, which `measured` reads them from.

const SUM = 0;
const LEAST = 1;
const LARGEST = 2;
const ZEROS = 3;
const NON_FINITE = 4;

const RESULTS = memory.data(5 * 8, 16);

// @ts-ignore: decorator
@inline
function put(i: u32, x: f64): void {
  store<f64>(RESULTS + (<usize>i << 3), x);
}

/** Result `i` of the last measurement: sum, least, largest, zeros, not finite. */
export function measured(i: u32): f64 {
  return load<f64>(RESULTS + (<usize>i << 3));
}

/** Measures one element after the other. */
function measureEach<T>(pointer: usize, n: u32): f64 {
  let squares: f64 = 0;
  let sum: f64 = 0;
  let least: f64 = Infinity;
  let largest: f64 = -Infinity;
  let zeros: u32 = 0;
  let nonFinite: u32 = 0;
  for (; n > 0; n--) {
    const x = <f64>load<T>(pointer);
    if (isFinite(x)) {
      squares += x * x;
      sum += x;
      least = x < least ? x : least;
      largest = x > largest ? x : largest;
      zeros += u32(x == 0);
    } else nonFinite++;
    pointer += sizeof<T>();
  }
  put(SUM, sum);
  put(LEAST, least);
  put(LARGEST, largest);
  put(ZEROS, <f64>zeros);
  put(NON_FINITE, <f64>nonFinite);
  return squares;
}

/** Adds what {@link measureEach} finds in the rest to the sums of the whole vectors. */
function withRest<T>(
  pointer: usize, n: u32, squares: f64, sum: f64, least: f64, largest: f64, zeros: f64,
): f64 {
  const more = measureEach<T>(pointer, n);
  put(SUM, sum + measured(SUM));
  put(LEAST, min(least, measured(LEAST)));
  put(LARGEST, max(largest, measured(LARGEST)));
  put(ZEROS, zeros + measured(ZEROS));
  return squares + more;
}

/** The sum of squares of `n` float32; `measured` has the rest. */
export function measureF32(pointer: usize, n: u32): f64 {
  let squares = f64x2.splat(0);
  let moreSquares = f64x2.splat(0);
  let sum = f64x2.splat(0);
  let moreSum = f64x2.splat(0);
  let least = f32x4.splat(Infinity);
  let largest = f32x4.splat(-Infinity);
  let zeros = i32x4.splat(0);
  let at = pointer;
  let left = n;
  for (; left >= 4; left -= 4) {
    const x = v128.load(at);
    // Loaded again: to convert from memory takes half the instructions of converting from a register.
    const low = f64x2.promote_low_f32x4(v128.load64_zero(at));
    const high = f64x2.promote_low_f32x4(v128.load64_zero(at, 8));
    squares = f64x2.add(squares, f64x2.mul(low, low));
    moreSquares = f64x2.add(moreSquares, f64x2.mul(high, high));
    sum = f64x2.add(sum, low);
    moreSum = f64x2.add(moreSum, high);
    least = f32x4.pmin(least, x);
    largest = f32x4.pmax(largest, x);
    zeros = i32x4.sub(zeros, f32x4.eq(x, f32x4.splat(0)));
    at += 16;
  }
  squares = f64x2.add(squares, moreSquares);
  const total = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1);
  // No square of a float32 overflows in f64: only a NaN or an infinity makes the sum one.
  if (!isFinite(total)) return measureEach<f32>(pointer, n);
  sum = f64x2.add(sum, moreSum);
  return withRest<f32>(
    at, left, total, f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1),
    <f64>min(
      min(f32x4.extract_lane(least, 0), f32x4.extract_lane(least, 1)),
      min(f32x4.extract_lane(least, 2), f32x4.extract_lane(least, 3)),
    ),
    <f64>max(
      max(f32x4.extract_lane(largest, 0), f32x4.extract_lane(largest, 1)),
      max(f32x4.extract_lane(largest, 2), f32x4.extract_lane(largest, 3)),
    ),
    <f64>(
      i32x4.extract_lane(zeros, 0) + i32x4.extract_lane(zeros, 1) +
      i32x4.extract_lane(zeros, 2) + i32x4.extract_lane(zeros, 3)
    ),
  );
}

/** The sum of squares of `n` float64, infinity if it overflows; `measured` has the rest. */
export function measureF64(pointer: usize, n: u32): f64 {
  let squares = f64x2.splat(0);
  let sum = f64x2.splat(0);
  let least = f64x2.splat(Infinity);
  let largest = f64x2.splat(-Infinity);
  let zeros = i64x2.splat(0);
  let at = pointer;
  let left = n;
  for (; left >= 2; left -= 2) {
    const x = v128.load(at);
    squares = f64x2.add(squares, f64x2.mul(x, x));
    sum = f64x2.add(sum, x);
    least = f64x2.pmin(least, x);
    largest = f64x2.pmax(largest, x);
    zeros = i64x2.sub(zeros, f64x2.eq(x, f64x2.splat(0)));
    at += 16;
  }
  const total = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1);
  // A square may overflow, too: one by one it is seen whether an element is not finite.
  if (!isFinite(total)) return measureEach<f64>(pointer, n);
  return withRest<f64>(
    at, left, total, f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1),
    min(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1)),
    max(f64x2.extract_lane(largest, 0), f64x2.extract_lane(largest, 1)),
    <f64>(i64x2.extract_lane(zeros, 0) + i64x2.extract_lane(zeros, 1)),
  );
}

/** As {@link measureF64}, of int32. */
export function measureI32(pointer: usize, n: u32): f64 {
  return measureEach<i32>(pointer, n);
}

/** As {@link measureF64}, of uint32. */
export function measureU32(pointer: usize, n: u32): f64 {
  return measureEach<u32>(pointer, n);
}

/** As {@link measureF64}, of int64, each rounded to f64. */
export function measureI64(pointer: usize, n: u32): f64 {
  return measureEach<i64>(pointer, n);
}

/** As {@link measureF64}, of uint64, each rounded to f64. */
export function measureU64(pointer: usize, n: u32): f64 {
  return measureEach<u64>(pointer, n);
}

/** As {@link measureF64}, of int8. */
export function measureI8(pointer: usize, n: u32): f64 {
  return measureEach<i8>(pointer, n);
}

/** As {@link measureF64}, of uint8. */
export function measureU8(pointer: usize, n: u32): f64 {
  return measureEach<u8>(pointer, n);
}

/** The sum of the squares of a − b, each computed in f64. */
export function distanceF32(a: usize, b: usize, n: u32): f64 {
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  for (; n >= 4; n -= 4) {
    const x = f64x2.sub(
      f64x2.promote_low_f32x4(v128.load64_zero(a)),
      f64x2.promote_low_f32x4(v128.load64_zero(b)),
    );
    const y = f64x2.sub(
      f64x2.promote_low_f32x4(v128.load64_zero(a, 8)),
      f64x2.promote_low_f32x4(v128.load64_zero(b, 8)),
    );
    low = f64x2.add(low, f64x2.mul(x, x));
    high = f64x2.add(high, f64x2.mul(y, y));
    a += 16;
    b += 16;
  }
  low = f64x2.add(low, high);
  let sum = f64x2.extract_lane(low, 0) + f64x2.extract_lane(low, 1);
  for (; n > 0; n--) {
    const difference = <f64>load<f32>(a) - <f64>load<f32>(b);
    sum += difference * difference;
    a += 4;
    b += 4;
  }
  return sum;
}

/** As distanceF32. */
export function distanceF64(a: usize, b: usize, n: u32): f64 {
  let sums = f64x2.splat(0);
  for (; n >= 2; n -= 2) {
    const x = f64x2.sub(v128.load(a), v128.load(b));
    sums = f64x2.add(sums, f64x2.mul(x, x));
    a += 16;
    b += 16;
  }
  let sum = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
  if (n > 0) {
    const difference = load<f64>(a) - load<f64>(b);
    sum += difference * difference;
  }
  return sum;
}
