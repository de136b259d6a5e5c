#ifndef PADDLE_FAILURES_H
#define PADDLE_FAILURES_H

#include <pserver.h>

/** Makes this the last error of the thread, prints it to standard error if it is the first with its code, and
 * returns -1. */
int ps_refuse(const char *function, pserver_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The same with libpserver's last error in this thread. */
int ps_refuse_as_core(const char *function);

/** Returns code and message of this thread's last error; "" before the first. */
const char *ps_last_refusal(void);

#endif
