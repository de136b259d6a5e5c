#ifndef STEP_DATA_H
#define STEP_DATA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sets of rows that the steps use in turn. */
#define ROW_SETS 16

/** Allocates zeros, which free() releases; ends the program if memory is short. */
void *allocate(size_t count, size_t bytes);

/** Makes small values of both signs, none of them denormal, in memory of allocate(). */
float *make_floats(size_t count);

/** Chooses distinct rows of a table, ascending: the same as bench/steps/random-rows.ts. In memory of allocate(). */
int64_t *choose_rows(uint32_t seed, size_t count, size_t below);

#ifdef __cplusplus
}
#endif

#endif
