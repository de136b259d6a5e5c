#ifndef ERRORS_ERRORS_H
#define ERRORS_ERRORS_H

/* The last error of each thread with its details, and what the client does about each code. */

#include <pserver_errors.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "errors/protocol.h"
#include "formats/formats.h"

/*
 * These functions add entries to the details of the thread's last error: the same names and values as in
 * the TypeScript client's `details`. An entry that does not fit is left out. All return the error's code,
 * so that a function that fails can end with `return ps_detail_…`.
 */

pserver_status ps_detail_text(const char *key, const char *text);
pserver_status ps_detail_bytes(const char *key, const void *text, size_t bytes);
pserver_status ps_detail_whole(const char *key, uint64_t number);
pserver_status ps_detail_signed(const char *key, int64_t number);
/** Adds a number as text; "NaN", "Infinity" and "-Infinity" as JavaScript writes them. */
pserver_status ps_detail_number(const char *key, double number);
pserver_status ps_detail_shape(const char *key, const uint64_t *shape, int32_t rank);
/** Adds a value that is already JSON. */
pserver_status ps_detail_json(const char *key, const char *json);

/** Replaces all details by this JSON object; "" is an empty one. */
pserver_status ps_detail_all(const char *json);

/** Adds the parameter, and what was expected and received. */
pserver_status ps_detail_mismatch(const char *parameter, const char *expected, const char *received);

/** Adds the numbers that were expected and received. */
pserver_status ps_detail_numbers(size_t expected, size_t received);

/** Adds every entry of a map in a message. */
pserver_status ps_detail_entries(const struct ps_value *map);

/** Bytes of an error's text, including the final zero; longer ones are cut. */
#define PS_ERROR_TEXT_BYTES 1024

/** Bytes of the details, including the final zero. */
#define PS_ERROR_DETAILS_BYTES 8192

/** An error. Its texts are UTF-8. */
struct ps_error {
  pserver_status code;
  char text[PS_ERROR_TEXT_BYTES];
  /** A JSON object; "" for an empty one. Written by the ps_detail_ functions. */
  char details[PS_ERROR_DETAILS_BYTES];
};

/** Makes this the last error of the thread, without details; returns the code. */
pserver_status ps_fail(pserver_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Fails with INTERNAL because there is not enough memory; the format says what for. */
#define ps_no_memory(...) ps_fail(PSERVER_ERR_INTERNAL, "no memory for " __VA_ARGS__)

/** Fails with BAD_VALUE unless a struct of a caller has the size that this version knows; `init` fills it. */
pserver_status ps_check_struct_size(const char *what, size_t expected, size_t received, const char *init);

/** Makes a copy of an error the last error; returns its code. */
pserver_status ps_fail_with(const struct ps_error *error);

/** Replaces code and text of the last error and keeps its details; returns the code. */
pserver_status ps_fail_reworded(pserver_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Returns the last error of the thread, valid until its next error. */
const struct ps_error *ps_last_error(void);

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
