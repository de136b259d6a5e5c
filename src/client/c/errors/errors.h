#ifndef ERRORS_ERRORS_H
#define ERRORS_ERRORS_H

#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>

#include "errors/error-reactions.h"

/** Bytes of a message, the final zero included; longer ones are cut. */
#define PS_ERROR_TEXT_BYTES 1024

/** Bytes of the details, the final zero included. */
#define PS_ERROR_DETAILS_BYTES 8192

/** An error with its message, which is UTF-8. */
struct ps_error {
  pserver_status code;
  char text[PS_ERROR_TEXT_BYTES];
  /** What it is about, a JSON object; "" for an empty one. Written by details.h. */
  char details[PS_ERROR_DETAILS_BYTES];
};

/** Makes this, without details, the last error of the thread and returns its code. */
pserver_status ps_fail(pserver_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The same of an error that was kept. */
pserver_status ps_fail_with(const struct ps_error *error);

/** The same with other words; the details stay. */
pserver_status ps_fail_reworded(pserver_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The last error of the thread. */
const struct ps_error *ps_last_error(void);
struct ps_error *ps_last_error_to_detail(void);

/** Puts text before the message of the last error and returns its code. */
pserver_status ps_fail_prefixed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Replaces an error by another, without details. */
void ps_error_set(struct ps_error *error, pserver_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The code with this name of so many bytes; INTERNAL if this version does not know it. */
pserver_status ps_status_from_name(const char *name, size_t bytes);

/** What the client does about a code in the answer to a request or a question. */
enum ps_reaction ps_reaction_to(pserver_status status);

/** What the client does about a code that is the outcome of a record, unless it ps_ends_session(). */
enum ps_rejection ps_reaction_to_rejection(pserver_status status);

/** Whether the code says that a session is over, which says nothing of the request or record. */
bool ps_ends_session(pserver_status status);

/** Whether the code tells a trainer that initializes that another has taken over. */
bool ps_yields_init(pserver_status status);

#endif
