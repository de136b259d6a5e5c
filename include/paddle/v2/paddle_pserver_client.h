/**
 * PaddlePaddle's parameter server client, second published revision, on libpserver.
 *
 * The broker's address comes from PSERVER_URL, else NATS_URL, else it is nats://127.0.0.1:4222; the
 * job from PSERVER_JOB, else "default"; this trainer's id from PSERVER_TRAINER, else it is one that is
 * used once. A trainer that is restarted under its id takes over what it was doing; two processes
 * with one id end each other's sessions. Credentials and TLS: as libpserver, see pserver.h.
 *
 * Every function may be called from any thread, several on one client at once, and blocks. Failures
 * return -1 (NULL), print a message to standard error the first time, and change nothing;
 * paddle_pserver_last_error() tells more. A call ends by itself: after PSERVER_TIMEOUT_MS, which if not
 * set is an hour for waiting until another trainer has initialized, ten minutes for saving, and 30
 * seconds for all else. NULL, clients that are released or of another process (after a fork), wrong
 * names, types and lengths are errors, not crashes. Lengths are in bytes.
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

/** Connects and joins the job; waits up to 10 seconds for broker and host. NULL if that fails. */
paddle_pserver_client* paddle_new_pserver_client(void);

/** Refuses new calls, waits up to 10 seconds for those under way, ends those that are left, and
 * disconnects. NULL and clients that are released already are ignored. */
void paddle_pserver_client_release(paddle_pserver_client* client);

/**
 * Waits until this trainer is selected to initialize the parameters, or another one has done so.
 * If the one that was selected dies before it finishes, one of those that wait is selected.
 * Returns 1 if selected, 0 if the parameters are initialized, -1 on failure.
 *
 * `config_proto` says how all parameters are updated: a configuration as JSON or YAML text, or a
 * serialized OptimizerConfig that holds no zero byte. One that does is cut there, noticed and refused
 * by paddle_init_param(): give it to paddle_begin_init_params_with_config(). NULL or "": SGD.
 */
int paddle_begin_init_params(paddle_pserver_client* client, const char* config_proto);

/** Stores the first values of a parameter. 0, or -1. */
int paddle_init_param(paddle_pserver_client* client, paddle_parameter params);

/** Ends the initialization: others see the parameters from now on. 0, or -1. */
int paddle_finish_init_params(paddle_pserver_client* client);

/**
 * One step of each parameter's optimizer with this learning rate, which goes before that of the
 * configuration. All gradients are checked before any is sent. Integers take none, set them. 0, or -1;
 * after a timeout, each piece of a gradient was applied once or not at all.
 */
int paddle_send_grads(paddle_pserver_client* client, const paddle_gradient* grads, int total, double learning_rate);

/** Overwrites values. 0, or -1. */
int paddle_set_params(paddle_pserver_client* client, const paddle_parameter* params, int total);

/**
 * Reads parameters; waits until they are initialized. Where `dst[i].content` is NULL memory is allocated,
 * to be freed with paddle_release_params(); else `content_len` must be the parameter's length, and
 * what is there is undefined after a failure. `content`, `content_len` and `element_type` are set, and
 * `name`, if it is NULL, to `names[i]` itself. 0, or -1.
 */
int paddle_get_params(paddle_pserver_client* client, const char** names, paddle_parameter* dst, int total);

/** Has a host write the model to `path` below its model directory. 0, or -1. */
int paddle_save_model(paddle_pserver_client* client, const char* path);

/* Beyond the published functions */

/** paddle_begin_init_params() with a serialized OptimizerConfig of `config_len` bytes. */
int paddle_begin_init_params_with_config(paddle_pserver_client* client, const void* config_proto, int config_len);

/** Frees the contents that paddle_get_params() allocated and makes them NULL. Names are the caller's. */
void paddle_release_params(paddle_parameter* params, int total);

/** Name and message of this thread's last failure, valid until its next one; "" before the first. */
const char* paddle_pserver_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
