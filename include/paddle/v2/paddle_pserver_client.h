/**
 * PaddlePaddle's parameter server client, second published revision, on libpserver.
 *
 * The environment says where to connect: the broker's address is in PSERVER_URL, else NATS_URL, else
 * nats://127.0.0.1:4222; the job in PSERVER_JOB, else "default"; the trainer's id in PSERVER_TRAINER, else
 * it is an id that is used once. A trainer that restarts with the same id continues in its place; two
 * processes with one id end each other's sessions. Credentials and TLS: as for libpserver, see pserver.h.
 *
 * Every function may be called from any thread, also concurrently with one client, and blocks. A call that
 * fails returns -1 (or NULL) and changes nothing; the first failure with a code is printed to standard
 * error, and paddle_pserver_last_error() returns the last one. The timeout of calls is PSERVER_TIMEOUT_MS;
 * by default an hour for waiting until another trainer has initialized, ten minutes for saving, and 30
 * seconds for all other calls. NULL, clients that are released or of another process (as after a fork),
 * wrong names, types and lengths are errors, not crashes. Lengths are in bytes.
 */
#ifndef PADDLE_PSERVER_CLIENT_V2_H
#define PADDLE_PSERVER_CLIENT_V2_H

#ifdef __cplusplus
extern "C" {
#endif

#define PADDLE_ELEMENT_TYPE_INT32   0
#define PADDLE_ELEMENT_TYPE_UINT32  1
#define PADDLE_ELEMENT_TYPE_INT64   2
#define PADDLE_ELEMENT_TYPE_UINT64  3
#define PADDLE_ELEMENT_TYPE_FLOAT32 4
#define PADDLE_ELEMENT_TYPE_FLOAT64 5

typedef struct {
  char* name;
  int element_type;
  void* content;
  int content_len;
} paddle_parameter, paddle_gradient;

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
 *
 * `config_proto` is the configuration of all parameters: JSON or YAML text, or a serialized OptimizerConfig
 * without zero bytes. One with zero bytes is cut there, and then refused by paddle_init_param(): pass it to
 * paddle_begin_init_params_with_config() instead. NULL or "": SGD.
 */
int paddle_begin_init_params(paddle_pserver_client* client, const char* config_proto);

/** Stores the first values of a parameter. Returns 0, or -1. */
int paddle_init_param(paddle_pserver_client* client, paddle_parameter params);

/** Ends the initialization: from now on others can read the parameters. Returns 0, or -1. */
int paddle_finish_init_params(paddle_pserver_client* client);

/**
 * Makes one step of each parameter's optimizer with this learning rate, which overrides that of the
 * configuration. All gradients are checked before any is sent. Integers cannot have gradients; set them.
 * Returns 0, or -1; after a timeout, the gradient of each block is applied once or not at all.
 */
int paddle_send_grads(paddle_pserver_client* client, const paddle_gradient* grads, int total, double learning_rate);

/** Overwrites the values of parameters. Returns 0, or -1. */
int paddle_set_params(paddle_pserver_client* client, const paddle_parameter* params, int total);

/**
 * Reads parameters; waits until they are initialized. If `dst[i].content` is NULL, it receives allocated
 * memory, to be freed with paddle_release_params(). Otherwise `content_len` must be the parameter's length,
 * and the content is undefined after a failure. Sets `content`, `content_len` and `element_type`, and
 * `name`, if it is NULL, to the pointer `names[i]`. Returns 0, or -1.
 */
int paddle_get_params(paddle_pserver_client* client, const char** names, paddle_parameter* dst, int total);

/** Makes a host write the model to `path` below its model directory. Returns 0, or -1. */
int paddle_save_model(paddle_pserver_client* client, const char* path);

/* Beyond the published functions */

/** Does the same as paddle_begin_init_params(), with a serialized OptimizerConfig of `config_len` bytes. */
int paddle_begin_init_params_with_config(paddle_pserver_client* client, const void* config_proto, int config_len);

/** Frees the contents that paddle_get_params() has allocated, and sets them to NULL. Names belong to the
 * caller. */
void paddle_release_params(paddle_parameter* params, int total);

/** Returns code and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
