#ifndef PADDLE_FAILURES_H
#define PADDLE_FAILURES_H

#include <pserver.h>

/** Keeps a failure of a function as the thread's last one, prints the first of each code to standard
 * error, and returns -1. */
int ps_refuse(const char *function, pserver_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The same with what libpserver says of its last failure in this thread. */
int ps_refuse_as_core(const char *function);

/** Code and message of this thread's last failure, "" before the first. */
const char *ps_last_refusal(void);

#endif
