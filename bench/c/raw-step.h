#ifndef RAW_STEP_H
#define RAW_STEP_H

/* What the two programs of raw steps agree on. */

#define RAW_STREAM "BENCH-STEPS"
#define RAW_RECORDS "bench.steps.records"
/** Requests name the number of messages that the server must have read before it answers. */
#define RAW_REQUESTS "bench.steps.requests"
#define RAW_VALUES "bench.steps.values"

#endif
