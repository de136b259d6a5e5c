#ifndef PADDLE_V3_ETCD_H
#define PADDLE_V3_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Broker and job, as hosts publish them in etcd. */
struct ps_discovery {
  /** The broker's addresses, separated by commas; those that do not fit are left out. */
  char url[4096];
  char job[64];
};

/** Finds broker and job in etcd; waits for them up to 10 seconds. False with an error. */
bool ps_discover(const char *endpoints, struct ps_discovery *found);

/** Bytes of a decoded key or value, including the final zero. */
#define PS_ETCD_TEXT_SIZE 4096

/** A position in the JSON of a reply to a range request of etcd's HTTP gateway. */
struct ps_etcd_reply {
  const char *at;
};

/** Begins to read a reply. False if the text is not one; a reply may have no entries. */
bool ps_etcd_reply_open(struct ps_etcd_reply *reply, const char *json);

/** Reads the next entry; false after the last, or at a malformed one. Text that does not fit or contains a
 * zero byte is read as "". */
bool ps_etcd_reply_next(struct ps_etcd_reply *reply, char key[PS_ETCD_TEXT_SIZE],
                        char value[PS_ETCD_TEXT_SIZE]);

/** Writes text in base64; false if it does not fit. */
bool ps_base64_encode(const char *text, char *target, size_t size);

#endif
