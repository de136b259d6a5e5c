#ifndef PADDLE_EXPECT_H
#define PADDLE_EXPECT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Ends the program, with file and line, unless the condition is true. */
#define EXPECT(condition)                                                                     \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: expected %s\nlast error: %s\n", __FILE__, __LINE__, #condition, \
              paddle_pserver_last_error());                                                   \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

/** Whether a message of paddle_pserver_last_error() is about this code. */
static inline int is_about(const char *message, const char *code) {
  const char *colon = strstr(message, ": ");
  size_t length = strlen(code);
  return colon != NULL && strncmp(colon + 2, code, length) == 0 && colon[2 + length] == ':';
}

/** Ends the program unless the call fails with this code. */
#define EXPECT_ERROR(code, call)                           \
  do {                                                     \
    EXPECT((call) == -1);                                  \
    EXPECT(is_about(paddle_pserver_last_error(), code));   \
  } while (0)

/** Whether these are the values, apart from the rounding of float32. */
static inline int are_near(const void *content, const float *expected, int count) {
  float value;
  for (int i = 0; i < count; i++) {
    memcpy(&value, (const char *)content + (size_t)i * sizeof value, sizeof value);
    if (fabsf(value - expected[i]) > 1e-6f) return 0;
  }
  return 1;
}

#endif
