#ifndef PADDLE_ENVIRONMENT_H
#define PADDLE_ENVIRONMENT_H

#include <stdint.h>

/** Returns the variable's value; NULL if it is not set, or empty. */
const char *ps_environment_value(const char *name);

/** Returns PSERVER_TIMEOUT_MS; 0 if it is not set; -1, with an error, if it is invalid. */
int64_t ps_environment_timeout_ms(const char *function);

#endif
