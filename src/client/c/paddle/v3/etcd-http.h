#ifndef PADDLE_V3_ETCD_HTTP_H
#define PADDLE_V3_ETCD_HTTP_H

#include <stddef.h>
#include <stdint.h>

/** Asks etcd for all keys from `first` up to, but not including, `end`. Returns the JSON of the answer, to
 * be freed; NULL on failure, with the reason in `reason`, which has `size` bytes. */
char *ps_etcd_range(const char *endpoint, const char *first, const char *end, int64_t timeout_ms,
                    char *reason, size_t size);

#endif
