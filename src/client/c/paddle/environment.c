/* Settings from the environment, for which the published functions have no argument. */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>

#include "failures.h"

/** A year, the longest timeout that libpserver accepts. */
#define TIMEOUT_MS_MAX (INT64_C(365) * 24 * 3600 * 1000)

const char *ps_environment_value(const char *name) {
  const char *value = getenv(name);
  return value == NULL || *value == '\0' ? NULL : value;
}

int64_t ps_environment_timeout_ms(const char *function) {
  const char *text = ps_environment_value("PSERVER_TIMEOUT_MS");
  if (text == NULL) return 0;
  char *end;
  errno = 0;
  long long timeout_ms = strtoll(text, &end, 10);
  if (errno == 0 && *end == '\0' && timeout_ms > 0 && timeout_ms <= TIMEOUT_MS_MAX) {
    return timeout_ms;
  }
  return ps_refuse(function, PSERVER_ERR_BAD_VALUE,
                   "PSERVER_TIMEOUT_MS: expected milliseconds, from 1 to a year; received \"%s\"", text);
}
