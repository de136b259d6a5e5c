#ifndef ERRORS_ERRORS_H
#define ERRORS_ERRORS_H

#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>

#include "errors/error-reactions.h"

/** Bytes of an error's text, including the final zero; longer ones are cut. */
#define PS_ERROR_TEXT_BYTES 1024

/** Bytes of the details, including the final zero. */
#define PS_ERROR_DETAILS_BYTES 8192

/** An error. Its texts are UTF-8. */
struct ps_error {
  pserver_status code;
  char text[PS_ERROR_TEXT_BYTES];
  /** A JSON object; "" for an empty one. Written by the functions of details.h. */
  char details[PS_ERROR_DETAILS_BYTES];
};

/** Makes this the last error of the thread, without details; returns the code. */
pserver_status ps_fail(pserver_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Makes a copy of an error the last error; returns its code. */
pserver_status ps_fail_with(const struct ps_error *error);

/** Replaces code and text of the last error and keeps its details; returns the code. */
pserver_status ps_fail_reworded(pserver_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Returns the last error of the thread, valid until its next error. */
const struct ps_error *ps_last_error(void);
/** Returns it for the functions of details.h, which change it. */
struct ps_error *ps_last_error_to_detail(void);

/** Inserts text before that of the last error; returns its code. */
pserver_status ps_fail_prefixed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Writes an error without details to `error`, not to the last error. */
void ps_error_set(struct ps_error *error, pserver_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Returns the code with this name of so many bytes; INTERNAL if this version does not know it. */
pserver_status ps_status_from_name(const char *name, size_t bytes);

/** Returns what the client does about a code in the answer to a request. */
enum ps_reaction ps_reaction_to(pserver_status status);

/** Returns what the client does about a code in an outcome, unless the code ends the session. */
enum ps_rejection ps_reaction_to_rejection(pserver_status status);

/** Whether the code says that the session is over, and nothing about the request or record. */
bool ps_ends_session(pserver_status status);

/** Whether the code tells an initializing trainer that another one initializes instead. */
bool ps_yields_init(pserver_status status);

#endif
