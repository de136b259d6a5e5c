#ifndef WIRE_NAMES_H
#define WIRE_NAMES_H

#include <pserver_errors.h>
#include <stddef.h>

#include "wire/envelope.h"

/** Maximum bytes of escaped names, and the sizes of buffers for them, with the final zero. */
#define PS_NAME_BYTES_MAX 200
#define PS_ID_BYTES_MAX 64
#define PS_JOB_BYTES_MAX 40
#define PS_TOKEN_SIZE (PS_NAME_BYTES_MAX + 1)
#define PS_ID_SIZE (PS_ID_BYTES_MAX + 1)

/**
 * Escapes a parameter's name of so many bytes as a subject token. BAD_NAME if it is empty, not UTF-8, or
 * longer than PS_NAME_BYTES_MAX once escaped.
 */
pserver_status ps_escape_name(const char *name, size_t bytes, char token[PS_TOKEN_SIZE]);

/* In this library a name is a C string, in which the bytes C0 80 stand for a NUL. In messages it is plain
 * UTF-8. */

/** Packs a name that ps_escape_name() has accepted. */
void ps_pack_name(struct ps_draft *draft, const char *name);

/** Returns a text of a message as a name, to be freed; NULL if there is no memory. */
char *ps_name_of_text(const void *text, size_t bytes);

/** Returns the FNV-1a hash of a name. */
uint32_t ps_name_hash(const char *name, size_t bytes);

/** Escapes a trainer's id as a subject token. BAD_NAME. */
pserver_status ps_escape_id(const char *id, char token[PS_ID_SIZE]);

/** BAD_NAME unless a job's name is 1 to 40 characters A-Z a-z 0-9 and -. */
pserver_status ps_check_job_name(const char *job);

#endif
