#ifndef WIRE_NAMES_H
#define WIRE_NAMES_H

#include <pserver_errors.h>
#include <stddef.h>

#include "wire/envelope.h"

/** Bytes of escaped names at most, and room for them with the final zero. */
#define PS_NAME_BYTES_MAX 200
#define PS_ID_BYTES_MAX 64
#define PS_JOB_BYTES_MAX 40
#define PS_TOKEN_SIZE (PS_NAME_BYTES_MAX + 1)
#define PS_ID_SIZE (PS_ID_BYTES_MAX + 1)

/**
 * A parameter's name of so many bytes as one subject token, at most PS_NAME_BYTES_MAX.
 * BAD_NAME if it is empty, no UTF-8 or too long.
 */
pserver_status ps_escape_name(const char *name, size_t bytes, char token[PS_TOKEN_SIZE]);

/*
 * A name is a C string in this library, in which the bytes C0 80 stand for a NUL. In messages it is UTF-8.
 */

/** Packs a name that ps_escape_name() has taken. */
void ps_pack_name(struct ps_draft *draft, const char *name);

/** The name that is a text of a message, allocated; NULL if there is no memory. */
char *ps_name_of_text(const void *text, size_t bytes);

/** A hash of a name, FNV-1a. */
uint32_t ps_name_hash(const char *name, size_t bytes);

/** A trainer's id as one token. BAD_NAME. */
pserver_status ps_escape_id(const char *id, char token[PS_ID_SIZE]);

/** BAD_NAME unless it is 1 to 40 of A-Z a-z 0-9 and -; NULL is none. */
pserver_status ps_check_job_name(const char *job);

#endif
