/**
 * PaddlePaddle's parameter server client, first published revision, on libpserver.
 *
 * The broker's address comes from PSERVER_URL, else NATS_URL, else it is nats://127.0.0.1:4222; the
 * job from PSERVER_JOB, else "default"; this trainer's id from PSERVER_TRAINER, else it is one that is
 * used once. A trainer that is restarted under its id takes over what it was doing; two processes
 * with one id end each other's sessions. Credentials and TLS: as libpserver, see pserver.h.
 *
 * The functions of this revision take values without a length. Of a parameter that the job has
 * already, the length is known from there; of any other say it first: paddle_declare_param().
 * Parameters are trained by SGD with a learning rate of 1.0, so gradients are to be scaled by the
 * trainer's own rate.
 *
 * Every function may be called from any thread, several on one client at once, and blocks. Failures
 * return -1 (NULL), print a message to standard error the first time, and change nothing;
 * paddle_pserver_last_error() tells more. A call ends by itself: after PSERVER_TIMEOUT_MS, which if not
 * set is an hour for waiting until another trainer has initialized, ten minutes for saving, and 30
 * seconds for all else. NULL, clients that are released or of another process (after a fork), wrong
 * names, types and lengths are errors, not crashes.
 */
#ifndef PADDLE_PSERVER_CLIENT_V1_H
#define PADDLE_PSERVER_CLIENT_V1_H

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_ELEMENT_TYPE_INT32   0
#define PADDLE_ELEMENT_TYPE_UINT32  1
#define PADDLE_ELEMENT_TYPE_INT64   2
#define PADDLE_ELEMENT_TYPE_UINT64  3
#define PADDLE_ELEMENT_TYPE_FLOAT32 4
#define PADDLE_ELEMENT_TYPE_FLOAT64 5

typedef struct paddle_pserver_client paddle_pserver_client;

/** Connects and joins the job; waits up to 10 seconds for broker and host. NULL if that fails. */
paddle_pserver_client* paddle_new_pserver_client(void);

/** Refuses new calls, waits up to 10 seconds for those under way, ends those that are left, and
 * disconnects. NULL and clients that are released already are ignored. */
void paddle_pserver_client_release(paddle_pserver_client* client);

/**
 * Waits until this trainer is selected to initialize the parameters, or another one has done so.
 * If the one that was selected dies before it finishes, one of those that wait is selected.
 * Returns 1 if selected, 0 if the parameters are initialized, -1 on failure.
 */
int paddle_begin_init_param(paddle_pserver_client* client);

/** Stores the first values of a parameter whose length was declared. 0, or -1. */
int paddle_init_param(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/** Ends the initialization: others see the parameters from now on. 0, or -1. */
int paddle_finish_init_param(paddle_pserver_client* client);

/** value -= gradient. Integers take none, set them. 0, or -1. */
int paddle_send_grad(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/** Overwrites the values. 0, or -1. */
int paddle_set_param(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/**
 * Reads the values; waits until they are initialized. With `*dst` NULL memory is allocated, to be
 * freed with paddle_release_param(); else `*dst` has room for `*dstLen` bytes, and what is there is
 * undefined after a failure. `*dstLen` becomes the length in bytes. 0, or -1.
 */
int paddle_get_param(paddle_pserver_client* client, const char* name, void** dst, int* dstLen);

/** Has a host write the model to `path` below its model directory. 0, or -1. */
int paddle_save_model(paddle_pserver_client* client, const char* path);

/* Beyond the published functions */

/**
 * Says how many elements a parameter has, which the functions above do not take. Needed before
 * paddle_init_param() of a name; for others, only to spare a question to the server. 0, or -1.
 */
int paddle_declare_param(paddle_pserver_client* client, const char* name, int element_type, long long num_elements);

/** Frees what paddle_get_param() allocated and makes `*dst` NULL; NULL is ignored. */
void paddle_release_param(void** dst);

/** Name and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
