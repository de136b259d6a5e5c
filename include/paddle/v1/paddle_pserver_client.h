/**
 * PaddlePaddle's parameter server client, first published revision, on libpserver.
 *
 * The environment says where to connect: the broker's address is in PSERVER_URL, else NATS_URL, else
 * nats://127.0.0.1:4222; the job in PSERVER_JOB, else "default"; the trainer's id in PSERVER_TRAINER, else
 * it is an id that is used once. A trainer that restarts with the same id continues in its place; two
 * processes with one id end each other's sessions. Credentials and TLS: as for libpserver, see pserver.h.
 *
 * The functions of this revision have no argument for the length of values. The length of a parameter that
 * the job has already is known; declare that of any other parameter first, with paddle_declare_param().
 * Parameters are trained by SGD with a learning rate of 1.0, so trainers scale gradients by their own rate.
 *
 * Every function may be called from any thread, also concurrently with one client, and blocks. A call that
 * fails returns -1 (or NULL) and changes nothing; the first failure with a code is printed to standard
 * error, and paddle_pserver_last_error() returns the last one. The timeout of calls is PSERVER_TIMEOUT_MS;
 * by default an hour for waiting until another trainer has initialized, ten minutes for saving, and 30
 * seconds for all other calls. NULL, clients that are released or of another process (as after a fork),
 * wrong names, types and lengths are errors, not crashes.
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

/** Connects and joins the job; waits up to 10 seconds for broker and host. NULL if that fails. Release the
 * client with paddle_pserver_client_release(). */
paddle_pserver_client* paddle_new_pserver_client(void);

/** Refuses new calls, waits up to 10 seconds for running ones, ends those that are left, and disconnects.
 * NULL and clients that are released already are ignored. */
void paddle_pserver_client_release(paddle_pserver_client* client);

/**
 * Waits until this trainer is selected to initialize the parameters, or another one has initialized them.
 * If the selected trainer dies before it finishes, one of those that wait is selected. Returns 1 if
 * selected, 0 if the parameters are initialized, -1 on failure.
 */
int paddle_begin_init_param(paddle_pserver_client* client);

/** Stores the first values of a parameter whose length is declared. Returns 0, or -1. */
int paddle_init_param(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/** Ends the initialization: from now on others can read the parameters. Returns 0, or -1. */
int paddle_finish_init_param(paddle_pserver_client* client);

/** Subtracts a gradient from the values. Integers cannot have gradients; set them. Returns 0, or -1. */
int paddle_send_grad(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/** Overwrites the values. Returns 0, or -1. */
int paddle_set_param(paddle_pserver_client* client, const char* name, int element_type, const void* content);

/**
 * Reads the values; waits until they are initialized. If `*dst` is NULL, it receives allocated memory, to
 * be freed with paddle_release_param(). Otherwise it points to `*dstLen` bytes, whose contents are
 * undefined after a failure. `*dstLen` becomes the length in bytes. Returns 0, or -1.
 */
int paddle_get_param(paddle_pserver_client* client, const char* name, void** dst, int* dstLen);

/** Makes a host write the model to `path` below its model directory. Returns 0, or -1. */
int paddle_save_model(paddle_pserver_client* client, const char* path);

/* Beyond the published functions */

/**
 * Declares the number of elements of a parameter. Required before paddle_init_param(); for a parameter of
 * the job it only saves a request. Returns 0, or -1.
 */
int paddle_declare_param(paddle_pserver_client* client, const char* name, int element_type, long long num_elements);

/** Frees memory that paddle_get_param() has allocated, and sets `*dst` to NULL. NULL is ignored. */
void paddle_release_param(void** dst);

/** Returns code and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
