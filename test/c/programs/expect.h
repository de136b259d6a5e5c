#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>

/** Ends the program, with file and line, unless the condition is true. */
#define EXPECT(condition)                                                                    \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      const char *why_ = "";                                                                 \
      pserver_last_error(&why_);                                                             \
      fprintf(stderr, "%s:%d: expected %s\nlast error: %s\n", __FILE__, __LINE__, #condition, \
              why_);                                                                         \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

/** Ends the program unless the call succeeds. */
#define EXPECT_OK(call) EXPECT((call) == PSERVER_OK)

/** Ends the program unless the call fails with this code, and the last error says so, too. */
#define EXPECT_ERROR(code, call)                                  \
  do {                                                            \
    EXPECT((call) == PSERVER_ERR_##code);                         \
    EXPECT(pserver_last_error(NULL) == PSERVER_ERR_##code);       \
  } while (0)

#endif
